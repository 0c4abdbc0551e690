//! Sessions of a [`Context`] in files: opened with a lock, saved as a whole.
//!
//! A session file is JSON Lines: a line for each snapshot as [`write_session`] writes them, the working
//! state if there is one, and one line `{"runtime": {…}}` with what a context keeps and no document says
//! ([`crate::context::ContextState`]). Every reader of sessions takes such a file and skips that line.
//!
//! This module must not know selectors, arguments or providers. `durable` has what the operating system does.

mod durable;
mod error;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use durable::Locked;
pub(crate) use durable::output;
pub use error::FileError;

use crate::engine::{Context, ContextBuilder};
use crate::history::{LoadError, Session};
use crate::json::canonical;
use crate::logs::write_session;
use crate::tree::source::{read_files, read_open};
use crate::tree::{Limits, SourceError};

/// A session in a file, and the [`Context`] that writes it.
///
/// No other process can open it for writing until it is dropped. Nothing is written before [`SessionFile::save`].
///
/// ```
/// use pactql::{Context, Message, SessionFile};
/// let path = std::env::temp_dir().join(format!("pactql-{}.jsonl", std::process::id()));
/// let mut file = SessionFile::create(&path, Context::new())?;
/// file.context().append(Message::user("Where is my refund?"))?;
/// file.context().commit()?;
/// file.save()?;
/// drop(file);
///
/// let mut file = SessionFile::open(&path, Context::builder())?;
/// assert_eq!(file.context().cycle(), 2);
/// # drop(file);
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SessionFile {
    /// The file itself; links were followed.
    path: PathBuf,
    locked: Locked,
    context: Context,
}

impl SessionFile {
    /// Writes a context to a new file, and goes on with it there.
    ///
    /// # Errors
    /// A file of that name exists, or cannot be written.
    pub fn create(path: impl AsRef<Path>, mut context: Context) -> Result<Self, FileError> {
        let path = path.as_ref();
        let write = |out: &mut dyn Write| write_context(&mut context, out);
        let locked = durable::create(path, write).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => FileError::Exists(path.to_owned()),
            _ => FileError::Io(path.to_owned(), error),
        })?;
        Ok(Self {
            path: path.to_owned(),
            locked,
            context,
        })
    }

    /// Opens a file for writing: a session with or without a working state, as JSON Lines or as one
    /// document. Links are followed.
    ///
    /// # Errors
    /// See [`FileError`].
    pub fn open(path: impl AsRef<Path>, builder: ContextBuilder) -> Result<Self, FileError> {
        Self::open_limited(path.as_ref(), builder, Limits::default())
    }

    /// As [`SessionFile::open`], with a limit on what is read.
    pub(crate) fn open_limited(
        path: &Path,
        builder: ContextBuilder,
        limits: Limits,
    ) -> Result<Self, FileError> {
        let (locked, target) = durable::open(path)?;
        durable::check_plain(&locked, path)?;
        let bytes = read_open(&locked, path, limits);
        let documents = read_files([(bytes, path.to_owned())]).map_err(LoadError::from)?;
        if documents.is_empty() {
            let error = crate::tree::InputError::at_document("the file is empty".to_owned());
            let empty = SourceError::Invalid(vec![(path.to_owned(), error)]);
            return Err(LoadError::from(empty).into());
        }
        let session = Session::from_documents(documents).map_err(LoadError::from)?;
        Ok(Self {
            path: target,
            locked,
            context: builder.resume(&session)?,
        })
    }

    /// The context.
    pub fn context(&mut self) -> &mut Context {
        &mut self.context
    }

    /// Writes the session as it is now: its snapshots, the working state, and what the context keeps.
    /// Linear in the session.
    ///
    /// When it returns, the file is on the disk. Whenever the process is killed, the file is the one before
    /// or the new one, whole. Its mode is kept.
    ///
    /// # Errors
    /// The file system's. The file is as it was.
    pub fn save(&mut self) -> Result<(), FileError> {
        let context = &mut self.context;
        let write = |out: &mut dyn Write| write_context(context, out);
        let saved = durable::replace(&self.path, &self.locked, write);
        self.locked = saved.map_err(|error| FileError::Io(self.path.clone(), error))?;
        Ok(())
    }
}

/// Writes a context as a session file. Linear in the session.
///
/// # Errors
/// Those of the writer.
pub fn write_context(context: &mut Context, out: &mut dyn Write) -> io::Result<()> {
    let history = context.history();
    let working = history.working().map(|working| &**working);
    write_session(history.committed(), working, false, out)?;
    let kept = serde_json::to_string(&context.kept())?;
    write_kept(&kept, out)
}

/// Writes a context to another file than its own, which is replaced if it exists: all or nothing, as
/// [`SessionFile::save`]. A device or a pipe is written to.
///
/// # Errors
/// Another process is writing that session; the file system's.
pub(crate) fn write_file(path: &Path, mut context: Context) -> Result<(), FileError> {
    let failed = |error| FileError::Io(path.to_owned(), error);
    match path.metadata() {
        Ok(data) if !data.is_file() => {
            output(path, |out| write_context(&mut context, out)).map_err(failed)
        }
        Ok(_) => {
            let (locked, path) = durable::open(path)?;
            let write = |out: &mut dyn Write| write_context(&mut context, out);
            durable::replace(&path, &locked, write).map_err(failed)?;
            Ok(())
        }
        Err(_) => SessionFile::create(path, context).map(drop),
    }
}

/// Writes the line of what a context keeps.
///
/// # Errors
/// Those of the writer.
pub(crate) fn write_kept(kept: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{{\"runtime\":{}}}", canonical(kept))
}
