//! Copies of stores as Parquet files: what comes back, what is added, what is mended (STORE §2).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pactql::{Context, Message, Session, Store, store::ParquetExport};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use sha2::{Digest, Sha256};

use super::place::{Folder, documents, sound};
use crate::support::random::{self, Rng};

/// A store out of a copy.
pub(super) struct Copied {
    pub(super) store: Store,
    path: String,
}

impl Copied {
    pub(super) fn new(folder: &Folder, directory: &str, number: u32) -> Result<Self, String> {
        let path = folder.file(&format!("out of a copy {number}.db"));
        let store = Store::open(&path).map_err(|error| error.to_string())?;
        let imported = store.import_parquet(directory);
        imported.map_err(|error| format!("import: {error}"))?;
        Ok(Self { store, path })
    }

    /// Compares every session with its documents.
    pub(super) fn check(&self, wanted: &BTreeMap<String, Vec<String>>) -> Result<(), String> {
        let listed = self.store.sessions("").map_err(|error| error.to_string())?;
        let listed: Vec<&String> = listed.iter().map(|info| &info.name).collect();
        let names: Vec<&String> = wanted.keys().collect();
        if listed != names {
            return Err(format!("copied sessions {listed:?}, wanted {names:?}"));
        }
        for (name, wanted) in wanted {
            let session = self
                .store
                .session(name)
                .map_err(|error| error.to_string())?;
            let found = documents(&session)?;
            if found != (wanted.clone(), None) {
                return Err(format!(
                    "copied session {name}: {found:?}, wanted {wanted:?}"
                ));
            }
        }
        sound(&self.store)
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{end}", self.path));
        }
    }
}

/// The files of a directory and those below, by their paths in it.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path)
            } else {
                let name = path.strip_prefix(directory).unwrap().to_owned();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Compares the files of two directories.
pub(super) fn same_files(one: &str, other: &str) -> Result<(), String> {
    let (one, other) = (files(Path::new(one)), files(Path::new(other)));
    let differ = |path: &&PathBuf| one.get(*path) != other.get(*path);
    match one.keys().chain(other.keys()).find(differ) {
        Some(path) => Err(format!("{} differs", path.display())),
        None => Ok(()),
    }
}

fn all() -> ParquetExport {
    ParquetExport::default()
}

/// Writes a session with so many commits, each with a text of its own and one that all have.
fn write(store: &Store, name: &str, commits: usize) {
    let mut context = store.write(name).unwrap();
    for number in 0..commits {
        add(&mut context, &format!("{name} says {number}"));
    }
}

fn add(context: &mut Context, text: &str) {
    context.append(Message::user(text)).unwrap();
    context
        .reply(Message::assistant("the same answer"))
        .unwrap();
    context.commit().unwrap();
}

/// The documents of every session, without working states.
fn committed(store: &Store) -> BTreeMap<String, Vec<String>> {
    let sessions = store.sessions("").unwrap().into_iter();
    let each = sessions.map(|info| {
        let (committed, _) = documents(&store.session(&info.name).unwrap()).unwrap();
        (info.name, committed)
    });
    each.collect()
}

/// The part files of a table that a copy has.
fn parts(directory: &str, table: &str) -> usize {
    let names = files(&Path::new(directory).join(table));
    names.len()
}

#[test]
fn what_is_new_is_added_and_what_is_old_stays() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).unwrap();
    for name in ["a", "b", "c"] {
        write(&store, name, 2);
    }
    let directory = folder.file("copy");
    let what = all().buckets(2);
    let first = store.export_parquet(&directory, &what).unwrap();
    assert_eq!((first.sessions, first.snapshots, first.buckets), (3, 6, 2));
    let before = files(Path::new(&directory));

    let mut context = store.write("a").unwrap();
    add(&mut context, "more");
    // Not committed, so it is in no copy.
    context.append(Message::user("not yet")).unwrap();
    context.save().unwrap();
    let second = store.export_parquet(&directory, &what).unwrap();
    // The turn that came, and nothing else.
    assert_eq!((second.snapshots, second.units, second.buckets), (7, 1, 1));
    let after = files(Path::new(&directory));
    for (path, bytes) in &before {
        let table = path.iter().next().unwrap();
        if ["node", "unit", "attr"].iter().any(|name| table == *name) {
            assert!(after.get(path) == Some(bytes), "{}", path.display());
        }
    }
    let wanted = committed(&store);
    Copied::new(&folder, &directory, 1)
        .unwrap()
        .check(&wanted)
        .unwrap();

    // A save changes no commit, so no file of units comes of it.
    context.append(Message::user("nor yet")).unwrap();
    context.save().unwrap();
    let third = store.export_parquet(&directory, &what).unwrap();
    assert_eq!((third.units, third.buckets), (0, 1));
    assert_eq!(parts(&directory, "node"), 3);

    // The files of many additions become one.
    for number in 0..15 {
        add(&mut context, &format!("addition {number}"));
        store.export_parquet(&directory, &what).unwrap();
    }
    assert!(
        parts(&directory, "node") < 8,
        "{}",
        parts(&directory, "node")
    );
    let wanted = committed(&store);
    Copied::new(&folder, &directory, 2)
        .unwrap()
        .check(&wanted)
        .unwrap();
}

#[test]
fn what_was_erased_pruned_and_deleted_is_in_no_file() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).unwrap();
    for name in ["a", "b", "c"] {
        write(&store, name, 3);
    }
    let directory = folder.file("copy");
    let what = all().buckets(1);
    store.export_parquet(&directory, &what).unwrap();
    let ids: Vec<String> = {
        let session = store.session("b").unwrap();
        let found = store.engine().rows(&session, "@t0 .cb[content~'b says 1']");
        found.unwrap().ids().map(|id| id.to_string()).collect()
    };
    assert_eq!(ids.len(), 1);
    store.erase("b", [ids[0].as_str()]).unwrap();
    store.delete("a").unwrap();
    let keep = pactql::store::Retention::default().keep(1).sessions("c");
    store.prune(&keep).unwrap();
    store.export_parquet(&directory, &what).unwrap();
    let wanted = committed(&store);
    assert_eq!((wanted.len(), wanted["c"].len()), (2, 1));
    Copied::new(&folder, &directory, 1)
        .unwrap()
        .check(&wanted)
        .unwrap();
    assert_eq!(parts(&directory, "node"), 1);

    // The last session goes, and the bucket with it.
    store.delete("b").unwrap();
    store.delete("c").unwrap();
    let none = store.export_parquet(&directory, &what).unwrap();
    assert_eq!((none.sessions, none.snapshots), (0, 0));
    Copied::new(&folder, &directory, 2)
        .unwrap()
        .check(&BTreeMap::new())
        .unwrap();
}

/// Numbers of units are those of one store. Another one with the same sessions has others, and goes on with the copy all
/// the same.
#[test]
fn a_copy_goes_on_from_another_store_with_the_same_sessions() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).unwrap();
    for name in ["a", "b", "gone"] {
        write(&store, name, 2);
    }
    // The numbers of its units stay unused.
    store.delete("gone").unwrap();
    write(&store, "a", 1);
    let directory = folder.file("copy");
    store.export_parquet(&directory, &all().buckets(1)).unwrap();

    let other = Store::open(folder.file("b.db")).unwrap();
    for name in ["a", "b"] {
        let session = store.session(name).unwrap();
        other.import(name, &session, None).unwrap();
    }
    write(&other, "b", 1);
    for (number, store) in [(1, &other), (2, &store), (3, &other)] {
        store.export_parquet(&directory, &all()).unwrap();
        let copied = Copied::new(&folder, &directory, number).unwrap();
        copied.check(&committed(store)).unwrap();
    }
}

/// The files of a copy, without those that its manifests name, the manifests and the lock.
fn unnamed(directory: &Path) -> Vec<PathBuf> {
    let there = files(directory);
    let (manifests, others): (Vec<_>, Vec<_>) = there
        .iter()
        .partition(|(path, _)| path.starts_with("_pactql"));
    let mut named = BTreeSet::new();
    let mut left = Vec::new();
    for (path, bytes) in manifests {
        match path.extension() {
            Some(end) if end == "json" => {
                let manifest: serde_json::Value = serde_json::from_slice(bytes).unwrap();
                let files = manifest["files"].as_array().unwrap().iter();
                named.extend(files.map(|file| PathBuf::from(file["path"].as_str().unwrap())));
            }
            _ if path.ends_with("lock") => {}
            _ => left.push(path.clone()),
        }
    }
    let others = others.into_iter().map(|(path, _)| path.clone());
    left.extend(others.filter(|path| !named.contains(path)));
    left
}

/// The texts in the files of a copy, whatever names them.
fn texts(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in files(&directory.join("node")).into_keys() {
        let path = directory.join("node").join(path);
        if path.extension().is_none_or(|end| end != "parquet") {
            continue;
        }
        let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let content = row.get_column_iter().find(|(name, _)| *name == "content");
            if let Some((_, Field::Str(text))) = content {
                found.insert(text.clone());
            }
        }
    }
    found
}

/// When an export is ended, some of its files are there and others are as before, in the order of writing. The
/// next export mends that, whatever is new since, and leaves no text that the store does not have.
#[test]
fn an_export_that_was_ended_at_any_file_is_mended() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).unwrap();
    for name in ["a", "b", "c", "d"] {
        write(&store, name, 2);
    }
    let directory = folder.file("copy");
    // Each session has a bucket of its own.
    let what = all().buckets(6);
    store.export_parquet(&directory, &what).unwrap();
    let old = files(Path::new(&directory));
    let before = committed(&store);
    write(&store, "a", 1);
    write(&store, "e", 2);
    // The bucket of `b` is written anew.
    let keep = pactql::store::Retention::default().keep(1).sessions("b");
    store.prune(&keep).unwrap();
    store.export_parquet(&directory, &what).unwrap();
    let new = files(Path::new(&directory));
    let after = committed(&store);
    let mut changed: Vec<(std::time::SystemTime, &PathBuf)> = new
        .iter()
        .filter(|(path, bytes)| old.get(*path) != Some(bytes))
        .map(|(path, _)| {
            let data = Path::new(&directory).join(path).metadata().unwrap();
            (data.modified().unwrap(), path)
        })
        .collect();
    changed.sort();
    assert!(changed.len() > 10, "{changed:?}");
    let states = |next: &str, kept: usize| {
        let directory = folder.file(&format!("{next}, ended {kept}"));
        let root = Path::new(&directory);
        let mut there = old.clone();
        for (_, path) in &changed[..kept] {
            there.insert((*path).clone(), new[*path].clone());
        }
        // What was being written, and what somebody else put there.
        for part in [
            "node/bucket=1/.0000-0001.parquet.1-0.part",
            "node/bucket=5/.0001-0000.parquet.1-1.part",
            "_pactql/.bucket=5.json.1-2.part",
            "node/bucket=5/notes.txt",
        ] {
            there.insert(part.into(), vec![0; 100]);
        }
        for (path, bytes) in &there {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), bytes).unwrap();
        }
        directory
    };
    for next in ["nothing", "a commit", "a session is deleted"] {
        match next {
            "a commit" => write(&store, "c", 1),
            "a session is deleted" => store.delete("e").unwrap(),
            _ => {}
        }
        let wanted = committed(&store);
        let (_, whole) = export_new(&folder, &store, &what);
        let step = if random::few() { 5 } else { 1 };
        for kept in (0..=changed.len()).step_by(step) {
            let directory = states(next, kept);
            let root = Path::new(&directory);
            // What is not whole is refused, or is still as it was.
            if let Ok(copied) = Copied::new(&folder, &directory, 1) {
                let wanted = if kept == changed.len() {
                    &after
                } else {
                    &before
                };
                copied.check(wanted).unwrap();
            }
            store.export_parquet(&directory, &what).unwrap();
            let copied = Copied::new(&folder, &directory, 2).unwrap();
            copied
                .check(&wanted)
                .unwrap_or_else(|error| panic!("{next} after {kept} files: {error}"));
            let left = unnamed(root);
            assert_eq!(
                left,
                [Path::new("node/bucket=5/notes.txt")],
                "{next} after {kept} files"
            );
            assert_eq!(texts(root), whole, "{next} after {kept} files");
            fs::remove_dir_all(root).unwrap();
        }
    }
}

/// Exports to a new directory. Returns it, and its texts.
fn export_new(folder: &Folder, store: &Store, what: &ParquetExport) -> (String, BTreeSet<String>) {
    let directory = folder.file("new");
    if Path::new(&directory).exists() {
        fs::remove_dir_all(&directory).unwrap();
    }
    store.export_parquet(&directory, what).unwrap();
    let texts = texts(Path::new(&directory));
    (directory, texts)
}

/// An export fails after some files were replaced. The store is as the copy says, and the next export does not
/// believe that.
#[test]
fn a_bucket_that_was_being_written_is_written_again() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).unwrap();
    for name in ["gone", "a", "b"] {
        write(&store, name, 2);
    }
    store.delete("gone").unwrap();
    let directory = folder.file("copy");
    store.export_parquet(&directory, &all().buckets(1)).unwrap();
    let other = Store::open(folder.file("b.db")).unwrap();
    for name in ["a", "b"] {
        let session = store.session(name).unwrap();
        other.import(name, &session, None).unwrap();
    }
    let root = Path::new(&directory);
    // A directory in the place of a file: the last table of the bucket cannot be written.
    let retired = files(&root.join("retired")).into_keys().next().unwrap();
    let retired = root.join("retired").join(retired);
    fs::remove_file(&retired).unwrap();
    fs::create_dir_all(retired.join("inside")).unwrap();
    other.export_parquet(&directory, &all()).unwrap_err();
    fs::remove_dir_all(&retired).unwrap();
    store.export_parquet(&directory, &all()).unwrap();
    let copied = Copied::new(&folder, &directory, 1).unwrap();
    copied.check(&committed(&store)).unwrap();
    assert!(unnamed(root).is_empty(), "{:?}", unnamed(root));
}

#[test]
fn another_copy_in_the_same_directory_is_refused() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).unwrap();
    write(&store, "a", 1);
    let directory = folder.file("copy");
    store
        .export_parquet(&directory, &all().sessions("a*").buckets(3))
        .unwrap();
    for (what, said) in [
        (all(), "of the sessions `a*`"),
        (all().sessions("a*").buckets(4), "in 3 buckets"),
        (all().sessions("a*").since_ns(1), "of any age"),
    ] {
        let error = store
            .export_parquet(&directory, &what)
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{error}");
    }
    store
        .export_parquet(&directory, &all().sessions("a*"))
        .unwrap();
    for buckets in [0, 65_537] {
        let error = store.export_parquet(folder.file("new"), &all().buckets(buckets));
        assert!(error.unwrap_err().to_string().contains("are not from 1 to"));
    }
    fs::create_dir(folder.file("other")).unwrap();
    fs::write(folder.file("other/x"), "x").unwrap();
    let error = store
        .export_parquet(folder.file("other"), &all())
        .unwrap_err();
    assert!(
        error.to_string().contains("is not a copy of a store"),
        "{error}"
    );
    let error = store.import_parquet(folder.file("other")).unwrap_err();
    assert!(
        error.to_string().contains("is not a copy of a store"),
        "{error}"
    );
    // The names of the sessions are taken; nothing is imported.
    let error = store.import_parquet(&directory).unwrap_err();
    assert_eq!(error.code(), pactql::Code::SessionExists);
    sound(&store).unwrap();
}

/// Whoever holds the lock of a copy reads it as it is at one moment.
#[test]
fn readers_hold_exports_off() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).unwrap();
    write(&store, "a", 1);
    let directory = folder.file("copy");
    store.export_parquet(&directory, &all().buckets(1)).unwrap();
    write(&store, "a", 1);
    let before = files(Path::new(&directory));
    let lock = || fs::File::open(Path::new(&directory).join("_pactql/lock")).unwrap();
    let readers = [lock(), lock()];
    for reader in &readers {
        reader.try_lock_shared().unwrap();
    }
    let error = store.export_parquet(&directory, &all()).unwrap_err();
    assert!(error.to_string().contains("holds its lock"), "{error}");
    assert!(files(Path::new(&directory)) == before);
    drop(readers);
    let done = store.export_parquet(&directory, &all()).unwrap();
    assert_eq!(done.snapshots, 2);
}

#[test]
fn sessions_are_chosen_by_the_time_of_their_newest_commit() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).unwrap();
    write(&store, "old", 1);
    let now = store.sessions("").unwrap()[0].committed_at_ns.unwrap();
    write(&store, "new", 2);
    let directory = folder.file("copy");
    let what = all().since_ns(now + 1);
    let done = store.export_parquet(&directory, &what).unwrap();
    assert_eq!((done.sessions, done.snapshots), (1, 2));
    let mut wanted = committed(&store);
    wanted.remove("old");
    Copied::new(&folder, &directory, 1)
        .unwrap()
        .check(&wanted)
        .unwrap();
}

/// Each file of a copy, cut and with one bit altered: an import is refused, and changes nothing.
#[test]
fn an_altered_copy_is_refused() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).unwrap();
    store
        .import(
            "greenhouse",
            &Session::open("fixtures/greenhouse.jsonl").unwrap(),
            None,
        )
        .unwrap();
    let directory = folder.file("copy");
    store.export_parquet(&directory, &all().buckets(1)).unwrap();
    let into = Store::open(folder.file("b.db")).unwrap();
    let there = files(Path::new(&directory));
    let mut rng = Rng::new(5);
    for (path, bytes) in &there {
        // The lock.
        if bytes.is_empty() {
            continue;
        }
        let file = Path::new(&directory).join(path);
        let mut altered = vec![bytes[..bytes.len() - 2].to_vec(), Vec::new()];
        for _ in 0..random::share(1_000).max(20) {
            let mut other = bytes.clone();
            other[rng.below(bytes.len())] ^= 1 << rng.below(8);
            altered.push(other);
        }
        for altered in altered {
            fs::write(&file, altered).unwrap();
            assert!(into.import_parquet(&directory).is_err(), "{path:?}");
            assert!(into.sessions("").unwrap().is_empty());
        }
        fs::write(&file, bytes).unwrap();
    }
    into.import_parquet(&directory).unwrap();
    sound(&into).unwrap();
}

/// As [`an_altered_copy_is_refused`], with manifests that say the hashes of the altered files: what is in a file is
/// not trusted either.
#[test]
fn a_forged_copy_is_refused() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).unwrap();
    write(&store, "a", 3);
    let directory = folder.file("copy");
    store.export_parquet(&directory, &all().buckets(1)).unwrap();
    let wanted = committed(&store);
    let root = Path::new(&directory);
    let there = files(root);
    let hash = |bytes: &[u8]| hex(&Sha256::digest(bytes));
    let mut rng = Rng::new(17);
    let (mut refused, mut same) = (0, 0);
    for (path, bytes) in &there {
        if path.extension().is_none_or(|end| end != "parquet") {
            continue;
        }
        for number in 0..random::share(160) {
            let mut other = bytes.clone();
            match number % 8 {
                0 => other.truncate(rng.below(bytes.len())),
                _ => {
                    let at = rng.below(bytes.len());
                    other[at] ^= 1 << rng.below(8);
                }
            }
            fs::write(root.join(path), &other).unwrap();
            let mut hashes = vec![(hash(bytes), hash(&other))];
            for name in ["_pactql/bucket=0.json", "_pactql/copy.json"] {
                let old = &there[Path::new(name)];
                let mut text = String::from_utf8(old.clone()).unwrap();
                for (from, to) in &hashes {
                    text = text.replace(from, to);
                }
                fs::write(root.join(name), resealed(text.clone())).unwrap();
                hashes.push((hash(old), hash(text.as_bytes())));
            }
            match Copied::new(&folder, &directory, 1) {
                // What nothing reads was altered: a statistic, a name of a column's encoding.
                Ok(copied) => {
                    same += 1;
                    if !path.starts_with("session") {
                        copied.check(&wanted).unwrap();
                    }
                }
                Err(error) => {
                    refused += 1;
                    assert!(!error.is_empty());
                }
            }
        }
        fs::write(root.join(path), bytes).unwrap();
    }
    println!("{refused} refused, {same} the same");
    assert!(refused > random::share(500));
}

/// The manifest of a copy with the sum of what it says now; another as it is.
fn resealed(text: String) -> String {
    let member = "\"sha256\":\"";
    let end = |at: usize| at + member.len() + 64 + "\"}\n".len() == text.len();
    match text.rfind(member).filter(|at| end(*at)) {
        Some(at) => {
            let bare = format!("{}\"}}", &text[..at + member.len()]);
            let sum = hex(&Sha256::digest(&bare));
            format!("{}{sum}\"}}\n", &text[..at + member.len()])
        }
        None => text,
    }
}

/// Replaces a file of a copy, and the hashes that its manifests say.
fn forge(root: &Path, path: &str, bytes: &[u8]) {
    let hash = |bytes: &[u8]| hex(&Sha256::digest(bytes));
    let mut hashes = vec![(hash(&fs::read(root.join(path)).unwrap()), hash(bytes))];
    fs::write(root.join(path), bytes).unwrap();
    for name in ["_pactql/bucket=0.json", "_pactql/copy.json"] {
        let old = fs::read(root.join(name)).unwrap();
        let mut text = String::from_utf8(old.clone()).unwrap();
        for (from, to) in &hashes {
            text = text.replace(from, to);
        }
        fs::write(root.join(name), resealed(text.clone())).unwrap();
        hashes.push((hash(&old), hash(text.as_bytes())));
    }
}

/// A file with the columns of another: one row group of so many rows, in which all is null but `content`, which is the same
/// text in each row, if there is one.
fn uniform(like: &Path, rows: usize, content: Option<&[u8]>) -> Vec<u8> {
    use parquet::basic::{Compression, ZstdLevel};
    use parquet::column::writer::ColumnWriter;
    use parquet::data_type::ByteArray;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;

    let like = SerializedFileReader::new(fs::File::open(like).unwrap()).unwrap();
    let schema = like
        .metadata()
        .file_metadata()
        .schema_descr()
        .root_schema_ptr();
    let zstd = Compression::ZSTD(ZstdLevel::try_new(3).unwrap());
    let settings = WriterProperties::builder().set_compression(zstd).build();
    let mut out = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut out, schema.clone(), settings.into()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let (null, given) = (vec![0; rows], vec![1; rows]);
    for field in schema.get_fields() {
        let mut column = group.next_column().unwrap().unwrap();
        let text = content.filter(|_| field.name() == "content");
        match column.untyped() {
            ColumnWriter::ByteArrayColumnWriter(to) if text.is_some() => {
                let values = vec![ByteArray::from(text.unwrap().to_vec()); rows];
                to.write_batch(&values, Some(&given), None).unwrap();
            }
            ColumnWriter::ByteArrayColumnWriter(to) => {
                to.write_batch(&[], Some(&null), None).unwrap();
            }
            ColumnWriter::BoolColumnWriter(to) => {
                to.write_batch(&[], Some(&null), None).unwrap();
            }
            ColumnWriter::Int64ColumnWriter(to) => {
                to.write_batch(&[], Some(&null), None).unwrap();
            }
            ColumnWriter::DoubleColumnWriter(to) => {
                to.write_batch(&[], Some(&null), None).unwrap();
            }
            _ => panic!("another type of column"),
        }
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    out
}

/// Small files whose row groups have more rows, or longer texts, than an export writes. They are refused before memory
/// is taken for them.
#[test]
fn a_row_group_that_no_export_writes_is_refused() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let folder = Folder::quick();
    let store = Store::open(folder.file("a.db")).unwrap();
    write(&store, "a", 1);
    let directory = folder.file("copy");
    store.export_parquet(&directory, &all().buckets(1)).unwrap();
    let root = Path::new(&directory);
    let (path, node) = files(&root.join("node")).pop_first().unwrap();
    let path = Path::new("node").join(path);
    let like = folder.file("like.parquet");
    fs::write(&like, node).unwrap();
    let text = vec![b'a'; 1 << 20];
    for (rows, content, said) in [
        (4_000_000, None, "has 4000000 rows and not 32768 at most"),
        (32_769, None, "has 32769 rows and not 32768 at most"),
        (20, Some(&*text), "has longer texts"),
        (32_768, None, "is null"),
        (16, Some(&*text), "is null"),
    ] {
        let forged = uniform(Path::new(&like), rows, content);
        assert!(forged.len() < 500_000, "{}", forged.len());
        forge(root, path.to_str().unwrap(), &forged);
        let into = Store::open(folder.file(&format!("into {rows}.db"))).unwrap();
        let error = into.import_parquet(&directory).unwrap_err().to_string();
        assert!(error.contains(said), "{rows} rows: {error}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
