//! Sessions that are followed: each is visited again when it has grown.

use super::command::Invocation;
use super::each_session::{Opening, Visit};
use super::follow::{FollowedFiles, in_turns};
use super::input;
use super::opened::Opened;
use super::read_sessions::open_store;
use crate::app::present::folders::{LogSource, files_of};
use crate::app::present::followed::FollowedLogs;
use crate::app::present::stores::{Access, StoreAddress};
use crate::app::present::{Exit, Failure, Result};
use crate::history::Session;
use crate::logs::is_opencode;
use crate::store::Store;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What is followed: a word is one of these from the first.
enum Followed<'w> {
    Store(StoreAddress<'w>, Store, FollowedStore),
    /// A file, or a folder of logs or sessions.
    Path {
        path: &'w Path,
        is_folder: bool,
    },
}

/// What was read of a store that is followed.
#[derive(Default)]
struct FollowedStore {
    /// [`Store::version`] before its sessions were read.
    version: Option<i64>,
    open: HashMap<String, Arc<Session>>,
}

/// Gives each session that words mean to `visit`, and each again that has grown, until the program is interrupted. What is
/// followed is looked at in turns, as `import --follow` does.
///
/// # Errors
/// A word that is missing from the first; no store is followed, and all files have been given up; those of `visit`.
pub(super) fn follow(words: &[String], with: &Invocation, visit: &mut Visit<'_>) -> Result<Exit> {
    let mut opening = Opening::new(with.limits, words.len() > 1);
    opening.followed = Some(FollowedLogs::default());
    let mut all = Vec::with_capacity(words.len());
    for word in words {
        if *word == input::STDIN {
            return Err(Failure::usage("`-` cannot be followed")
                .with_help("`--follow` reads files, directories and stores"));
        }
        all.push(if let Some(address) = StoreAddress::parse(word) {
            opening.several |= address.is_several();
            let store = open_store(address.store, Access::Read)?;
            Followed::Store(address, store, FollowedStore::default())
        } else {
            let path = Path::new(word);
            let is_folder = path.is_dir() && !is_opencode(path);
            let is_folder = is_folder && files_of(word, with.limits)?.is_some();
            opening.several |= is_folder;
            Followed::Path { path, is_folder }
        });
    }
    let has_store = all.iter().any(|one| matches!(one, Followed::Store(..)));
    let mut files = FollowedFiles::default();
    in_turns(|stopped| {
        for followed in &mut all {
            let sources = match followed {
                Followed::Store(address, store, known) => {
                    follow_store(*address, store, known, opening.several, visit)?;
                    continue;
                }
                Followed::Path { path, is_folder } if *is_folder => LogSource::below(path)?,
                Followed::Path { path, .. } => vec![LogSource::new(&path.to_string_lossy())],
            };
            for source in sources {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let found = files.look(source, |source, _| opening.open_again(source))?;
                for found in found.into_iter().flatten() {
                    visit(&found)?;
                }
            }
        }
        Ok(files.end_turn().filter(|_| !has_store))
    })
}

/// Visits the sessions of a store that are new or have grown since the turn before. Reads one number if nothing was committed.
fn follow_store(
    address: StoreAddress<'_>,
    store: &Store,
    known: &mut FollowedStore,
    several: bool,
    visit: &mut Visit<'_>,
) -> Result<()> {
    // Before the sessions are read: a commit in between is noticed the next time.
    let version = Some(store.version()?);
    if known.version == version {
        return Ok(());
    }
    known.version = version;
    let open = &mut known.open;
    let names = if address.is_several() {
        store.names(address.glob())?
    } else {
        vec![address.one()?.to_owned()]
    };
    for name in names {
        let session = match open.get(&name) {
            Some(session) if !store.refresh(session)? => continue,
            Some(session) => Arc::clone(session),
            None => {
                let session = store.session(&name)?;
                open.insert(name.clone(), Arc::clone(&session));
                session
            }
        };
        visit(&Opened::stored(address, &name, session, several))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{FollowedStore, StoreAddress, follow_store};
    use crate::engine::Message;
    use crate::store::Store;

    #[test]
    fn a_followed_store_is_read_again_after_a_commit_alone() {
        let folder = std::env::temp_dir().join(format!("pactql-followed-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.db").to_string_lossy().into_owned();
        let store = Store::open(&path).unwrap();
        let mut context = store.write("one").unwrap();
        let address = StoreAddress::parse(&path).unwrap();
        let mut known = FollowedStore::default();
        for visits in [1, 0, 1] {
            if visits > 0 {
                context.append(Message::user("more")).unwrap();
                context.commit().unwrap();
            }
            // All that is read is new.
            known.open.clear();
            let mut found = 0;
            let visit = &mut |_: &_| {
                found += 1;
                Ok(())
            };
            follow_store(address, &store, &mut known, true, visit).unwrap();
            assert_eq!(found, visits);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
