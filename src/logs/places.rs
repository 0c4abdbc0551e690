//! Where agents keep their logs on a machine (INSPECT §3): one table, by the agents' own documentation. It must not
//! know what is in the logs, and reads neither files nor the environment.

use std::ffi::OsString;
use std::path::PathBuf;

/// The variable that names the directory of the user.
const HOME: &str = if cfg!(windows) { "USERPROFILE" } else { "HOME" };

/// Where an agent keeps its data, and its logs there.
struct Place {
    agent: &'static str,
    /// The directories that the data may be in: a variable, and the path below its value.
    data: &'static [(&'static str, &'static str)],
    logs: &'static [&'static str],
}

const PLACES: [Place; 6] = [
    Place {
        agent: "Claude Code",
        data: &[
            ("CLAUDE_CONFIG_DIR", ""),
            (HOME, ".claude"),
            (HOME, ".config/claude"),
        ],
        logs: &["projects"],
    },
    Place {
        agent: "Codex",
        data: &[("CODEX_HOME", ""), (HOME, ".codex")],
        logs: &["sessions", "archived_sessions"],
    },
    Place {
        agent: "Gemini CLI",
        data: &[("GEMINI_CLI_HOME", ".gemini"), (HOME, ".gemini")],
        logs: &["tmp"],
    },
    // Not the whole directory: there are credentials and copies of repositories in it.
    Place {
        agent: "opencode",
        data: &[
            ("XDG_DATA_HOME", "opencode"),
            (HOME, ".local/share/opencode"),
        ],
        logs: &["opencode.db", "storage"],
    },
    Place {
        agent: "Copilot CLI",
        data: &[("COPILOT_HOME", ""), (HOME, ".copilot")],
        logs: &["session-state"],
    },
    Place {
        agent: "pi",
        data: &[("PI_CODING_AGENT_DIR", ""), (HOME, ".pi/agent")],
        logs: &["sessions"],
    },
];

/// A folder or a file in which an agent keeps logs, if it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentLogs {
    /// The agent.
    pub agent: &'static str,
    /// The folder or the file.
    pub path: PathBuf,
}

/// Where the agents of a machine keep their logs, each path once; whether one is there is for the caller to see.
/// `variable` returns the value of a variable of the environment.
///
/// ```
/// use pactql::logs::agent_logs;
/// let places = agent_logs(|name| (name == "CODEX_HOME").then(|| "/srv/codex".into()));
/// assert_eq!(places[0].agent, "Codex");
/// assert_eq!(places[0].path, std::path::Path::new("/srv/codex/sessions"));
/// let here = agent_logs(|name| std::env::var_os(name));
/// # let _ = here;
/// ```
pub fn agent_logs(variable: impl Fn(&str) -> Option<OsString>) -> Vec<AgentLogs> {
    let mut places: Vec<AgentLogs> = Vec::new();
    for Place { agent, data, logs } in PLACES {
        for (name, below) in data {
            let Some(root) = variable(name).filter(|root| !root.is_empty()) else {
                continue;
            };
            for logs in logs {
                // Collected, so that no empty part leaves a separator at the end.
                let path: PathBuf = PathBuf::from(&root).join(below).join(logs).iter().collect();
                if places.iter().all(|place| place.path != path) {
                    places.push(AgentLogs { agent, path });
                }
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::{HOME, agent_logs};

    #[test]
    fn places_are_named_once() {
        let found = |variables: &[(&str, &str)]| {
            let value = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| value.into())
            };
            let places = agent_logs(value).into_iter();
            let places = places.map(|place| format!("{} {}", place.agent, place.path.display()));
            places.collect::<Vec<String>>()
        };
        assert_eq!(found(&[]), [""; 0]);
        assert_eq!(found(&[("CODEX_HOME", "")]), [""; 0]);
        assert_eq!(
            found(&[(HOME, "/home/ada"), ("CODEX_HOME", "/home/ada/.codex/")]),
            [
                "Claude Code /home/ada/.claude/projects",
                "Claude Code /home/ada/.config/claude/projects",
                "Codex /home/ada/.codex/sessions",
                "Codex /home/ada/.codex/archived_sessions",
                "Gemini CLI /home/ada/.gemini/tmp",
                "opencode /home/ada/.local/share/opencode/opencode.db",
                "opencode /home/ada/.local/share/opencode/storage",
                "Copilot CLI /home/ada/.copilot/session-state",
                "pi /home/ada/.pi/agent/sessions",
            ]
        );
        let named = [
            ("CLAUDE_CONFIG_DIR", "/a"),
            ("GEMINI_CLI_HOME", "/b"),
            ("XDG_DATA_HOME", "/c"),
            ("COPILOT_HOME", "/d"),
            ("PI_CODING_AGENT_DIR", "/e"),
        ];
        assert_eq!(
            found(&named),
            [
                "Claude Code /a/projects",
                "Gemini CLI /b/.gemini/tmp",
                "opencode /c/opencode/opencode.db",
                "opencode /c/opencode/storage",
                "Copilot CLI /d/session-state",
                "pi /e/sessions",
            ]
        );
    }
}
