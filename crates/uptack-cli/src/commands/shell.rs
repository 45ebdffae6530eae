//! `uptack completions` and `uptack man`: what a shell and a manual need, from the definition of the command line.

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use serde_json::json;

use crate::failure::{Failure, IoResultExt, Result};
use crate::layout::joined;
use crate::output::{print_exact, print_json};

/// Print a shell's completion script
#[derive(Args)]
#[command(after_help = "Examples:
  uptack completions bash > ~/.local/share/bash-completion/completions/uptack
  uptack completions zsh > ~/.zfunc/_uptack
  uptack completions fish > ~/.config/fish/completions/uptack.fish")]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run_completions(arguments: &CompletionsArguments, json: bool) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Cli::command(), "uptack", &mut script);
    let script = String::from_utf8_lossy(&script);
    if json {
        return print_json(&json!({"shell": arguments.shell.to_string(), "script": script}));
    }
    print_exact(&script)
}

/// Print the manual page of uptack or of one of its commands
#[derive(Args)]
#[command(after_help = "Examples:
  uptack man | man -l -
  uptack man estimate > uptack-estimate.1")]
pub(crate) struct ManArguments {
    /// The command whose page to print
    command: Option<String>,
}

pub(crate) fn run_man(arguments: &ManArguments, json: bool) -> Result<()> {
    let page = render(page_command(arguments.command.as_deref())?)?;
    if json {
        return print_json(&json!({"command": arguments.command, "page": page}));
    }
    print_exact(&page)
}

fn page_command(name: Option<&str>) -> Result<Command> {
    let mut root = crate::Cli::command();
    // Global options and full names reach the subcommands only when the tree is built.
    root.build();
    match name {
        Some(name) => find(&root, name),
        None => Ok(root),
    }
}

fn render(command: Command) -> Result<String> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).while_writing("manual page")?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn find(root: &Command, name: &str) -> Result<Command> {
    let found = root.get_subcommands().find(|command| command.get_name() == name);
    found.cloned().ok_or_else(|| unknown(root, name))
}

fn unknown(root: &Command, name: &str) -> Failure {
    let names = joined(root.get_subcommands().map(Command::get_name), ", ");
    Failure::request(format!("there is no command `{name}`")).with_hint(format!("commands are {names}"))
}
