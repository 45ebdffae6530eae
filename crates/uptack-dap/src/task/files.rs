//! Tasks as files: one for each reader, which nobody else can read.

use serde::{Serialize, de::DeserializeOwned};
use std::path::Path;

use super::TaskSet;
use crate::{
    error::{Error, Result},
    private,
};

impl TaskSet {
    /// Writes `leader.json`, `helper.json`, `collector.json` and `client.json`.
    pub fn write(&self, directory: &Path) -> Result<()> {
        self.write_common(directory)?;
        write(&directory.join("leader.json"), &self.leader)?;
        write(&directory.join("helper.json"), &self.helper)
    }

    /// Writes the files that do not depend on the aggregators' software.
    pub(super) fn write_common(&self, directory: &Path) -> Result<()> {
        std::fs::create_dir_all(directory).map_err(|error| Error::file(directory, error))?;
        write(&directory.join("collector.json"), &self.collector)?;
        write(&directory.join("client.json"), self.parameters())
    }
}

/// Reads one of the files that [`TaskSet::write`] wrote.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::named_file(path, error))?;
    serde_json::from_str(&text).map_err(|error| {
        // The position is enough; the library's message could quote a secret.
        let (path, line, column) = (path.display(), error.line(), error.column());
        Error::input(format!("{path}: not a task file of this kind (line {line}, column {column})"))
    })
}

/// Writes a definition, or a part of one, readable by its owner alone.
pub fn write(path: &Path, value: &impl Serialize) -> Result<()> {
    private::write_secret(path, &to_json(value))
}

fn to_json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("task definitions are plain data");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{AggregatorTask, CollectorTask, TaskParameters, tests::sample};
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

    #[test]
    fn files_are_read_back_as_written() {
        let directory = tempfile::tempdir().unwrap();
        let set = TaskSet::generate(sample()).unwrap();
        set.write(directory.path()).unwrap();
        let leader: AggregatorTask = read(&directory.path().join("leader.json")).unwrap();
        assert_eq!(to_json(&leader), to_json(&set.leader));
        let helper: AggregatorTask = read(&directory.path().join("helper.json")).unwrap();
        assert_eq!(to_json(&helper), to_json(&set.helper));
        let collector: CollectorTask = read(&directory.path().join("collector.json")).unwrap();
        assert_eq!(to_json(&collector), to_json(&set.collector));
        let client: TaskParameters = read(&directory.path().join("client.json")).unwrap();
        assert_eq!(client.leader.as_str(), "http://127.0.0.1:1/leader/");
        leader.validate().unwrap();
        helper.validate().unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn files_are_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        TaskSet::generate(sample()).unwrap().write(directory.path()).unwrap();
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[cfg(feature = "janus")]
    #[test]
    fn each_role_gets_a_file_in_the_form_of_its_software() {
        use crate::task::Software;
        let set = TaskSet::generate(sample()).unwrap();
        for (software, expected) in [
            ([Software::Janus, Software::Uptack], ["leader.yaml", "helper.json"]),
            ([Software::Uptack, Software::Janus], ["leader.json", "helper.yaml"]),
        ] {
            let directory = tempfile::tempdir().unwrap();
            assert_eq!(set.write_for(directory.path(), software).unwrap(), expected);
            let mut names: Vec<_> = std::fs::read_dir(directory.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            let mut all = [&expected[..], &["client.json", "collector.json"]].concat();
            all.sort_unstable();
            assert_eq!(names, all);
        }
    }

    #[test]
    fn no_file_holds_what_its_reader_must_not_have() {
        let set = TaskSet::generate(sample()).unwrap();
        let shown = set.leader.aggregator_token.clone().unwrap();
        let secret = URL_SAFE_NO_PAD.encode(set.collector.hpke_keypair.private_key());
        assert!(!to_json(&set.helper).contains(shown.as_str()));
        for text in [to_json(&set.leader), to_json(&set.helper)] {
            assert!(!text.contains(set.collector.token.as_str()));
            assert!(!text.contains(&secret));
        }
        let client = to_json(set.parameters());
        assert!(!client.contains("token") && !client.contains("key"));
    }

    #[test]
    fn bad_files_are_refused_without_quoting_them() {
        let set = TaskSet::generate(sample()).unwrap();
        let token = set.collector.token.as_str().to_owned();
        let text = to_json(&set.collector).replace("\"token\"", "\"tokem\"");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("collector.json");
        std::fs::write(&path, text).unwrap();
        let message = read::<CollectorTask>(&path).unwrap_err().to_string();
        assert!(message.contains("line") && !message.contains(&token), "{message}");
    }
}
