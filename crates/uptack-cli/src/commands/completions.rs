//! `uptack completions`

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde_json::json;

use crate::failure::Result;
use crate::output::{print_exact, print_json};

/// Print a shell's completion script
#[derive(Args)]
#[command(after_help = "Examples:
  uptack completions bash > ~/.local/share/bash-completion/completions/uptack
  uptack completions zsh > ~/.zfunc/_uptack
  uptack completions fish > ~/.config/fish/completions/uptack.fish")]
pub(crate) struct Arguments {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Cli::command(), "uptack", &mut script);
    let script = String::from_utf8_lossy(&script);
    if json {
        return print_json(&json!({"shell": arguments.shell.to_string(), "script": script}));
    }
    print_exact(&script)
}
