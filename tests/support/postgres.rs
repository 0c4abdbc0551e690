//! A PostgreSQL server of its own for a test: own data directory, Unix socket only.
//!
//! Debian's `postgresql` brings the programs. They refuse to run as root, so then they run as the user
//! `postgres`. A shell that reads from this process looks after the server: however this process ends, the
//! shell ends the server and removes its files.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A running server. Dropping it stops it and removes its files.
pub struct Server {
    directory: PathBuf,
    keeper: Option<(Child, ChildStdin)>,
}

/// Makes the data and runs the server; of the lines that come, `crash` and `stop` end it, and `start` starts
/// it again. Says `ready`, `ended` or `failed`. At the end of the lines it ends the server and cleans up.
const KEEPER: &str = r#"
programs=$1 directory=$2
# Whoever reads what this says may be gone.
trap '' PIPE
start() {
    "$programs/postgres" -D "$directory/data" -k "$directory" -h '' >> "$directory/log" 2>&1 &
    server=$!
    for _ in $(seq 600); do
        if "$programs/pg_isready" -q -h "$directory"; then echo ready; return; fi
        kill -0 "$server" 2> /dev/null || break
        sleep 0.05
    done
    echo failed
}
end() { kill "-$1" "$server" 2> /dev/null; wait "$server" 2> /dev/null; }
server=none
mkdir -m 700 "$directory" || exit
if "$programs/initdb" -U postgres -E UTF8 --locale=C -A trust --no-sync -D "$directory/data" \
    > "$directory/log" 2>&1; then start; else echo failed; fi
while read -r line; do
    case $line in
        start) start ;;
        crash) end QUIT; echo ended ;;
        stop) end INT; echo ended ;;
    esac
done
end QUIT
rm -rf "$directory"
"#;

impl Server {
    /// Starts a server on new data, or says why there is none: then the test prints `SKIPPED: reason`.
    pub fn start() -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // Each server costs seconds: by default tests run against SQLite alone.
        if ["CI", "PACTQL_POSTGRES"]
            .map(std::env::var_os)
            .iter()
            .all(Option::is_none)
        {
            return Err("tests start PostgreSQL where CI or PACTQL_POSTGRES is set".to_owned());
        }
        let programs = programs().ok_or("PostgreSQL's initdb is not in /usr/lib/postgresql")?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // A socket's path may have 107 bytes, which a longer directory for temporary files could use up.
        let name = format!("/tmp/pactql-pg-{}-{number}", std::process::id());
        let directory = PathBuf::from(name);
        let io = |error: std::io::Error| format!("{}: {error}", directory.display());
        let _ = std::fs::remove_dir_all(&directory);
        let command = run_as(&["sh", "-c", KEEPER, "keeper"]);
        let mut keeper = command
            .ok_or("there is no user `postgres`")?
            .args([&programs, &directory])
            .env("LC_ALL", "C")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(io)?;
        let lines = keeper.stdin.take().ok_or("the shell reads nothing")?;
        let mut server = Self {
            directory,
            keeper: Some((keeper, lines)),
        };
        server.wait_for("ready")?;
        Ok(server)
    }

    /// The address of its database `postgres`, for [`pactql::Store`] with a schema of this name.
    pub fn url(&self, schema: &str) -> String {
        let host = self.directory.display();
        format!("postgres:///postgres?host={host}&user=postgres&schema={schema}")
    }

    /// Ends it as a crash does: without a word to those connected, and without a checkpoint.
    pub fn kill(&mut self) {
        self.tell("crash", "ended");
    }

    /// Ends it after it has told those connected.
    pub fn stop(&mut self) {
        self.tell("stop", "ended");
    }

    /// Starts it after [`Server::kill`] or [`Server::stop`].
    pub fn resume(&mut self) {
        self.tell("start", "ready");
    }

    /// [`Server::kill`], then [`Server::resume`].
    pub fn restart(&mut self) {
        self.kill();
        self.resume();
    }

    fn tell(&mut self, line: &str, answer: &str) {
        if let Some((_, lines)) = &mut self.keeper {
            writeln!(lines, "{line}").expect("a text takes lines");
        }
        self.wait_for(answer).expect("psql answers");
    }

    fn wait_for(&mut self, expected: &str) -> Result<(), String> {
        let output = self
            .keeper
            .as_mut()
            .and_then(|(keeper, _)| keeper.stdout.as_mut());
        let mut line = String::new();
        // The shell writes one line at a time, so nothing after it is read ahead and lost.
        let mut output = BufReader::new(output.ok_or("the server is not running")?);
        output
            .read_line(&mut line)
            .map_err(|error| error.to_string())?;
        if line.trim() == expected {
            return Ok(());
        }
        let log = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        Err(format!("the server did not start: {log}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((mut keeper, lines)) = self.keeper.take() {
            drop(lines);
            let _ = keeper.wait();
        }
    }
}

/// The directory of the newest version that is installed.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let versions = versions.flatten().map(|version| version.path());
    let newest = versions
        .filter(|path| path.join("bin/initdb").exists())
        .max_by_key(|path| number(path))?;
    Some(newest.join("bin"))
}

/// A command that runs as this user or, if that is root, as `postgres`.
fn run_as(words: &[&str]) -> Option<Command> {
    let id = |arguments: &[&str]| {
        let told = Command::new("id").args(arguments).output().ok()?;
        let told = String::from_utf8(told.stdout).ok()?;
        told.trim().parse::<u32>().ok()
    };
    if id(&["-u"])? != 0 {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        return Some(command);
    }
    let (user, group) = (id(&["-u", "postgres"])?, id(&["-g", "postgres"])?);
    let mut command = Command::new("setpriv");
    command
        .arg(format!("--reuid={user}"))
        .arg(format!("--regid={group}"))
        .arg("--clear-groups")
        .args(words);
    Some(command)
}
