//! Where opencode keeps its sessions: a folder `storage` of a file for each session, message and part, or a SQLite
//! database with a row for each. Both are read as documents in the form of its exports, one a session, with the ids of
//! the sessions above it as `path`. Nothing is written. This file must not know what is in a message.

use super::input::LogError;
use super::input::ReadPart;
use super::json::{braced, list, push_member, quoted, value};
use super::sqlite;
use super::surrogates::mend_surrogates;
use crate::json::{get, members, string};
use crate::support::cancel::ensure;
use crate::tree::InputError;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use std::borrow::Cow;
use std::collections::HashMap;
use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

/// Whether it is a database of opencode.
pub(super) fn is_database(database: &Connection) -> bool {
    let tables = "select count(*) from sqlite_master where type = 'table' and name in ('session', 'message', 'part')";
    let count: rusqlite::Result<i64> = database.query_row(tables, [], |row| row.get(0));
    count.is_ok_and(|count| count == 3)
}

/// A session without its messages.
struct Kept {
    id: String,
    parent: Option<String>,
    /// Its JSON.
    info: String,
}

/// Reads a document for each session of a database.
pub(super) fn each_row(database: &Connection, read: &mut ReadPart<'_>) -> Result<(), InputError> {
    let failed = |error: rusqlite::Error| {
        InputError::at_document(format!(
            "expected sessions of opencode in this SQLite file: {error}"
        ))
    };
    let sessions = sessions(database).map_err(failed)?;
    let paths = paths(&sessions);
    let list_of = |table: &str, of: &str, order: &str| {
        let sql = format!("select id, data from {table} where {of} = ?1 order by {order}");
        database.prepare(&sql).map_err(failed)
    };
    let mut messages = list_of("message", "session_id", "time_created, id")?;
    let mut parts = list_of("part", "message_id", "id")?;
    for (session, path) in sessions.iter().zip(&paths) {
        ensure();
        let mut all = Vec::new();
        let mut rows = messages.query([&session.id]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let (id, info) = (text(row, 0), text(row, 1));
            let mut of_message = Vec::new();
            let mut rows = parts.query([&id]).map_err(failed)?;
            while let Some(row) = rows.next().map_err(failed)? {
                let part = text(row, 0);
                let ids = [
                    ("id", &*part),
                    ("messageID", &*id),
                    ("sessionID", &*session.id),
                ];
                of_message.extend(document_of(&ids, &text(row, 1), path, read)?);
            }
            let ids = [("id", &*id), ("sessionID", &*session.id)];
            if let Some(info) = document_of(&ids, &info, path, read)? {
                all.push(message(&info, &of_message));
            }
        }
        read(path, document(session, path, &all))?;
    }
    Ok(())
}

fn sessions(database: &Connection) -> rusqlite::Result<Vec<Kept>> {
    let mut query = database.prepare("select * from session order by time_created, id")?;
    let names: Vec<String> = query.column_names().map(str::to_owned).collect();
    let mut rows = query.query([])?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next()? {
        let (mut info, mut times) = (String::new(), String::new());
        for (at, name) in names.iter().enumerate() {
            let value = match row.get_ref(at)? {
                ValueRef::Null | ValueRef::Blob(_) => continue,
                ValueRef::Integer(number) => number.to_string(),
                ValueRef::Real(number) => number.to_string(),
                ValueRef::Text(_) => json_or_text(&text(row, at)),
            };
            match name.strip_prefix("time_") {
                Some(time) => push_member(time, &value, &mut times),
                None => push_member(name_of(name), &value, &mut info),
            }
        }
        push_member("time", &braced(&times), &mut info);
        let info = braced(&info);
        let found = members(&info);
        let named = |name| get(&found, name).and_then(string).map(Cow::into_owned);
        sessions.push(Kept {
            id: named("id").unwrap_or_default(),
            parent: named("parentID"),
            info,
        });
    }
    Ok(sessions)
}

/// What an export calls a column.
fn name_of(column: &str) -> &str {
    match column {
        "project_id" => "projectID",
        "parent_id" => "parentID",
        "workspace_id" => "workspaceID",
        name => name,
    }
}

fn text(row: &Row<'_>, at: usize) -> String {
    match row.get_ref(at) {
        Ok(ValueRef::Text(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}

/// The object or list that a column has, or its text.
fn json_or_text(text: &str) -> String {
    match value(text).filter(|_| text.starts_with(['{', '['])) {
        Some(json) => json.to_owned(),
        None => quoted(text),
    }
}

/// An object with its ids, where they are not in it; anything else is given to `read` as it is, which counts it.
fn document_of(
    ids: &[(&str, &str)],
    raw: &str,
    path: &str,
    read: &mut ReadPart<'_>,
) -> Result<Option<String>, InputError> {
    // Half a letter is mended later, in the whole document.
    let is_halved = || mend_surrogates(raw).is_some_and(|(whole, _)| value(&whole).is_some());
    let json = value(raw).or_else(|| is_halved().then(|| raw.trim()));
    let Some(object) = json.filter(|json| json.starts_with('{')) else {
        read(path, format!("{{{raw}"))?;
        return Ok(None);
    };
    let found = members(object);
    let mut out = String::new();
    for (name, id) in ids {
        if get(&found, name).is_none() {
            push_member(name, &quoted(id), &mut out);
        }
    }
    for (name, raw) in &found {
        push_member(name, raw, &mut out);
    }
    Ok(Some(braced(&out)))
}

fn message(info: &str, parts: &[String]) -> String {
    format!("{{\"info\":{info},\"parts\":{}}}", list(parts))
}

fn document(session: &Kept, path: &str, messages: &[String]) -> String {
    format!(
        "{{\"info\":{},\"path\":{},\"messages\":{}}}",
        session.info,
        quoted(path),
        list(messages)
    )
}

/// The ids of each session and of those above it, each after a `/`.
fn paths(sessions: &[Kept]) -> Vec<String> {
    let parents = sessions.iter();
    let parents = parents.map(|session| (&*session.id, session.parent.as_deref()));
    let parents: HashMap<&str, Option<&str>> = parents.collect();
    let path = |session: &Kept| {
        let mut ids = vec![&*session.id];
        let mut parent = session.parent.as_deref();
        while let Some(id) = parent.filter(|id| !ids.contains(id)) {
            ids.push(id);
            parent = parents.get(id).copied().flatten();
        }
        ids.iter().rev().map(|id| format!("/{id}")).collect()
    };
    sessions.iter().map(path).collect()
}

/// Whether a path is a folder or a database of opencode.
pub(crate) fn is_opencode(path: &Path) -> bool {
    is_storage(path) || open(path).is_ok_and(|database| database.is_some())
}

/// Whether a folder is one in which opencode keeps a file for each session, message and part.
pub(crate) fn is_storage(folder: &Path) -> bool {
    let parts = ["session", "message"];
    parts.iter().all(|name| folder.join(name).is_dir())
}

/// A database of opencode; `None` if the file is something else.
pub(super) fn open(path: &Path) -> io::Result<Option<Connection>> {
    let mut head = [0; 72];
    if !path.is_file()
        || File::open(path)?.read_exact(&mut head).is_err()
        || !sqlite::is_database(&head)
        || sqlite::names_program(&head)
    {
        return Ok(None);
    }
    let database = sqlite::of_file(path).map_err(io::Error::other)?;
    Ok(is_database(&database).then_some(database))
}

/// Reads a document for each session of a folder.
pub(super) fn each_file(folder: &Path, read: &mut ReadPart<'_>) -> Result<(), LogError> {
    let mut found = Vec::new();
    for project in entries(&folder.join("session"))? {
        for file in entries(&project)? {
            let id = id_of(&file);
            let raw = fs::read(&file)?;
            let Some(info) = document_of(
                &[("id", &id)],
                &String::from_utf8_lossy(&raw),
                &format!("/{id}"),
                read,
            )?
            else {
                continue;
            };
            let parent = get(&members(&info), "parentID")
                .and_then(string)
                .map(Cow::into_owned);
            let created = get(&members(&info), "time")
                .map(members)
                .unwrap_or_default();
            let created = get(&created, "created").and_then(|raw| raw.parse::<i64>().ok());
            found.push((created, Kept { id, parent, info }));
        }
    }
    found.sort_by(|(a, one), (b, other)| (a, &one.id).cmp(&(b, &other.id)));
    let sessions: Vec<Kept> = found.into_iter().map(|(_, session)| session).collect();
    for (session, path) in sessions.iter().zip(&paths(&sessions)) {
        ensure();
        let mut all = Vec::new();
        for file in entries(&folder.join("message").join(&session.id))? {
            let mut of_message = Vec::new();
            for part in entries(&folder.join("part").join(id_of(&file)))? {
                of_message.extend(file_of(&part, path, read)?);
            }
            if let Some(info) = file_of(&file, path, read)? {
                all.push(message(&info, &of_message));
            }
        }
        read(path, document(session, path, &all))?;
    }
    Ok(())
}

/// The object in a file; `None` also if the file went in the meantime.
fn file_of(file: &Path, path: &str, read: &mut ReadPart<'_>) -> Result<Option<String>, LogError> {
    match fs::read(file) {
        Ok(raw) => Ok(document_of(
            &[("id", &id_of(file))],
            &String::from_utf8_lossy(&raw),
            path,
            read,
        )?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The files of JSON and the folders in a folder, in the order of their names, which is that of their ids; none if
/// there is no such folder.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let found = match fs::read_dir(folder) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(Vec::new());
        }
        found => found?,
    };
    let paths = found.map(|entry| Ok(entry?.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json") || path.is_dir());
    paths.sort_unstable();
    Ok(paths)
}

fn id_of(file: &Path) -> String {
    file.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
