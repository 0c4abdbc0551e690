//! The databases: what they have to do, and how each spells it. They must not know the layout's meaning.

pub(crate) mod home;
pub(crate) mod new_file;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "postgres")]
pub(crate) mod postgres_client;
pub(crate) mod sql;
pub(crate) mod sqlite;

/// Every method of [`Database`], on every database.
#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use crate::store::database::home::{Home, HomeOptions};
    use crate::store::database::sql::{
        Begin, Database, Savepoint, SqlValue, Type, collect, first, int, text,
    };
    use crate::store::database::sqlite::{FileAccess, Sqlite};
    use crate::store::error::{Result, StoreError};
    use crate::store::layout::schema;

    const BUSY: Duration = Duration::from_millis(200);

    /// A directory of a test, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("pactql-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn file(&self, name: &str) -> String {
            self.0.join(name).to_str().unwrap().to_owned()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn options() -> HomeOptions {
        HomeOptions {
            busy: BUSY,
            ..HomeOptions::default()
        }
    }

    fn add(database: &mut dyn Database, name: &str) -> Result<i64> {
        let sql = "insert into session (name, created_at_ns, changed) values (?1, ?2, 0) \
               on conflict (name) do nothing returning session_id";
        let id = first(database, sql, &[name.into(), 7.into()], |row| int(row, 0))?;
        id.ok_or_else(|| StoreError::Exists(name.to_owned()))
    }

    fn names(database: &mut dyn Database) -> Vec<String> {
        let sql = "select name from session order by name";
        collect(database, sql, &[], |row| Ok(text(row, 0)?.to_owned())).unwrap()
    }

    /// Transactions, savepoints, versions; leaves two sessions, `b` and `c`.
    fn transactions(home: &Home) {
        let mut writer = home.writer().unwrap();
        let mut reader = home.reader().unwrap();
        let version = reader.data_version().unwrap();
        assert_eq!(version, reader.data_version().unwrap());

        writer.begin(Begin::Write).unwrap();
        let a = add(&mut *writer, "a").unwrap();
        assert_eq!(names(&mut *writer), ["a"]);
        assert_eq!(names(&mut *reader), [""; 0], "a reader sees whole commits");
        writer.rollback();
        writer.rollback();
        assert_eq!(names(&mut *writer), [""; 0]);
        assert_eq!(
            version,
            reader.data_version().unwrap(),
            "nothing was committed"
        );

        reader.begin(Begin::Read).unwrap();
        assert_eq!(names(&mut *reader), [""; 0]);
        writer.begin(Begin::Alone).unwrap();
        let b = add(&mut *writer, "b").unwrap();
        assert_ne!(a, 0);
        writer.savepoint(Savepoint::Set).unwrap();
        add(&mut *writer, "lost").unwrap();
        writer.savepoint(Savepoint::Set).unwrap();
        add(&mut *writer, "lost too").unwrap();
        writer.savepoint(Savepoint::Release).unwrap();
        writer.savepoint(Savepoint::Undo).unwrap();
        writer.savepoint(Savepoint::Set).unwrap();
        add(&mut *writer, "c").unwrap();
        writer.savepoint(Savepoint::Release).unwrap();
        writer.commit().unwrap();
        assert_eq!(names(&mut *reader), [""; 0], "a transaction sees one state");
        reader.commit().unwrap();
        assert_eq!(names(&mut *reader), ["b", "c"]);
        let later = reader.data_version().unwrap();
        assert_ne!(version, later);
        assert_eq!(later, reader.data_version().unwrap());

        let own = writer.data_version().unwrap();
        let sql = "update session set source = ?2 where session_id = ?1";
        assert_eq!(writer.execute(sql, &[b.into(), "x".into()]).unwrap(), 1);
        assert_eq!(writer.execute(sql, &[(-1).into(), "x".into()]).unwrap(), 0);
        assert_eq!(
            own,
            writer.data_version().unwrap(),
            "own commits do not count"
        );
        assert_ne!(later, reader.data_version().unwrap());
    }

    /// What was not ended, and what failed; the sessions stay.
    fn leftovers(home: &Home) {
        let mut writer = home.writer().unwrap();
        let mut reader = home.reader().unwrap();
        // Guards that are dropped in the middle.
        writer.begin(Begin::Write).unwrap();
        add(&mut *writer, "dropped").unwrap();
        drop(writer);
        reader.begin(Begin::Read).unwrap();
        drop(reader);
        assert_eq!(names(&mut *home.reader().unwrap()), ["b", "c"]);
        let mut writer = home.writer().unwrap();
        writer.begin(Begin::Write).unwrap();
        assert_eq!(names(&mut *writer), ["b", "c"]);

        // An error in the middle of rows, and one in a statement that a savepoint takes back.
        let mut seen = 0;
        let stopped = writer.query("select name from session order by name", &[], &mut |_| {
            seen += 1;
            Err(StoreError::Refused("enough".to_owned()))
        });
        assert!(matches!(stopped, Err(StoreError::Refused(_))) && seen == 1);
        writer.savepoint(Savepoint::Set).unwrap();
        let twice = "insert into session (name, created_at_ns, changed) values ('b', 1, 0)";
        assert!(writer.execute(twice, &[]).is_err());
        writer.savepoint(Savepoint::Undo).unwrap();
        assert!(matches!(add(&mut *writer, "b"), Err(StoreError::Exists(_))));
        writer.commit().unwrap();
        assert!(writer.scrub(Duration::ZERO).unwrap());

        let now = writer.now_ns().unwrap();
        let clock = std::time::SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap()
            .as_nanos() as i64;
        assert!((clock - now).abs() < 60_000_000_000, "{now} {clock}");
    }

    /// Values of all kinds come back as they went.
    fn values(database: &mut dyn Database) {
        let long = "ä∀\n'?1'".repeat(40_000);
        let all = "insert into attr (unit_id, pre, name, ordinal, type, text, int, real, big) \
               values (?1, ?2, ?3, ?4, 'it''s ?5', ?5, ?6, ?7, ?8)";
        for (pre, [text, int, real, big]) in [
            [
                SqlValue::Null,
                SqlValue::Null,
                SqlValue::Null,
                SqlValue::Null,
            ],
            [
                SqlValue::Text(&long),
                i64::MAX.into(),
                SqlValue::Real(-0.1),
                "".into(),
            ],
            [
                "x".into(),
                i64::MIN.into(),
                SqlValue::Real(1e308),
                "9".into(),
            ],
        ]
        .into_iter()
        .enumerate()
        {
            let key = [1.into(), (pre as i64).into(), "n".into(), (-1).into()];
            let row = [&key[..], &[text, int, real, big]].concat();
            assert_eq!(database.execute(all, &row).unwrap(), 1);
            let back =
                "select text, int, real, big, type from attr where unit_id = ?1 and pre = ?2";
            let found = first(database, back, &key[..2], |row| {
                let same = [
                    row.text(0)?.into(),
                    row.int(1)?.into(),
                    row.value(2, Type::Real)?,
                    row.text(3)?.into(),
                ] == [text, int, real, big];
                Ok(same && row.text(4)? == Some("it's ?5"))
            });
            assert_eq!(found.unwrap(), Some(true), "row {pre}");
        }
        let bytes: Vec<u8> = (0..=255).collect();
        for (json, bytes) in [(true, &bytes[..]), (false, &[])] {
            let put = "insert into body (hash, json, text) values (?1, ?2, ?3) returning body_id";
            let id = first(
                database,
                put,
                &[bytes.into(), json.into(), "".into()],
                |row| int(row, 0),
            );
            let back = "select hash, json, text from body where body_id = ?1 and json = ?2";
            let key = [id.unwrap().into(), json.into()];
            let same = first(database, back, &key, |row| {
                Ok(row.bytes(0)? == Some(bytes) && row.bool(1)? == Some(json))
            });
            assert_eq!(same.unwrap(), Some(true));
        }
        let wrong = first(database, "select name from session", &[], |row| row.int(0));
        assert!(matches!(wrong, Err(StoreError::Damaged(_))), "{wrong:?}");
        let few = database.execute("delete from session where name = ?1", &[]);
        assert!(few.is_err());
        assert!(database.execute("delete from nothing", &[]).is_err());
        let counted = first(database, "select count(*) from attr", &[], |row| {
            int(row, 0)
        });
        assert_eq!(counted.unwrap(), Some(3));
    }

    /// A backup has what the store has; it is made once.
    fn backups(home: &Home, folder: &Folder) {
        let path = folder.file("backup.db");
        let before = names(&mut *home.reader().unwrap());
        let mut reader = home.reader().unwrap();
        reader.backup(Path::new(&path)).unwrap();
        let twice = reader.backup(Path::new(&path)).unwrap_err();
        assert!(matches!(twice, StoreError::Io(..)), "{twice}");
        let copy = Home::open(&path, &options()).unwrap();
        assert_eq!(names(&mut *copy.reader().unwrap()), before);
        let mut writer = copy.writer().unwrap();
        for table in schema::TABLES {
            let sql = format!("select count(*) from {}", table.name);
            let count = |database: &mut dyn Database| first(database, &sql, &[], |row| int(row, 0));
            let name = table.name;
            assert_eq!(
                count(&mut *reader).unwrap(),
                count(&mut *writer).unwrap(),
                "{name}"
            );
        }
        // Ids go on after those of the store.
        assert!(add(&mut *writer, "new").unwrap() > 2);
        drop(writer);
        let files = std::fs::read_dir(&folder.0).unwrap();
        let parts = files.filter(|file| {
            let name = file.as_ref().unwrap().file_name();
            name.to_string_lossy().contains(".part")
        });
        assert_eq!(parts.count(), 0);
    }

    /// A layout that is newer, one that is older, one that is migrated, and tables of something else.
    fn layouts(url: &str) {
        let set = |sql: &str| {
            let home = Home::open(url, &options());
            home.unwrap().writer().unwrap().execute(sql, &[]).unwrap();
        };
        set("update format set version = 2, written_by = 'pactql 9'");
        let newer = Home::open(url, &options()).unwrap_err();
        let text = newer.to_string();
        assert!(
            matches!(newer, StoreError::OtherLayout { version: 2, .. }),
            "{text}"
        );
        assert!(text.contains("pactql 9"), "{text}");
    }

    #[test]
    fn sqlite() {
        let folder = Folder::new("sqlite");
        let url = format!("sqlite:{}", folder.file("a b#?.db"));
        let home = Home::open(&url, &options()).unwrap();
        transactions(&home);
        leftovers(&home);
        values(&mut *home.writer().unwrap());
        backups(&home, &folder);
        drop(home);
        layouts(&url);
    }

    #[test]
    fn options_and_addresses() {
        let folder = Folder::new("addresses");
        let path = folder.file("x.db");
        for options in [
            HomeOptions {
                must_exist: true,
                ..options()
            },
            HomeOptions {
                read_only: true,
                ..options()
            },
        ] {
            let missing = Home::open(&path, &options).unwrap_err();
            assert!(matches!(missing, StoreError::Missing(_)), "{missing}");
        }
        assert!(!Path::new(&path).exists());
        let home = Home::open(&path, &options()).unwrap();
        add(&mut *home.writer().unwrap(), "a").unwrap();
        let read_only = HomeOptions {
            read_only: true,
            ..options()
        };
        let reader = Home::open(&path, &read_only).unwrap();
        assert_eq!(names(&mut *reader.reader().unwrap()), ["a"]);
        assert!(matches!(reader.writer(), Err(StoreError::Refused(_))));
        assert!(add(&mut *reader.reader().unwrap(), "b").is_err());
        assert!(add(&mut *home.reader().unwrap(), "b").is_err());
        for url in ["", "sqlite:", "mysql://me:secret@host/x"] {
            let refused = Home::open(url, &options()).unwrap_err();
            assert!(matches!(refused, StoreError::Refused(_)), "{url}");
            assert!(!refused.to_string().contains("secret"));
        }
        let directory = Home::open(folder.0.to_str().unwrap(), &options()).unwrap_err();
        assert!(matches!(directory, StoreError::Io(..)), "{directory}");
        let json = folder.file("session.json");
        std::fs::write(&json, "{\"root\": {}}").unwrap();
        let other = Home::open(&json, &options()).unwrap_err();
        assert!(matches!(other, StoreError::NotAStore(_)), "{other}");
        let foreign = folder.file("foreign.db");
        let tables = rusqlite::Connection::open(&foreign).unwrap();
        tables.execute("create table format (x)", []).unwrap();
        let other = Home::open(&foreign, &options()).unwrap_err();
        assert!(matches!(other, StoreError::NotAStore(_)), "{other}");
    }

    /// A candidate query finds its rows by the index of texts if it says which texts that has.
    #[test]
    fn sqlite_uses_its_indexes() {
        let folder = Folder::new("indexes");
        let home = Home::open(&folder.file("x.db"), &options()).unwrap();
        let mut reader = home.reader().unwrap();
        let texts = format!("name = 'x' and text = ?1 and {}", schema::ATTR_BY_TEXT);
        let sources = format!("source = ?1 and {}", schema::RECORDED);
        for (index, table, condition) in [
            ("node_by_id", "node", "id = ?1"),
            ("node_by_body", "node", "body_id = ?1"),
            ("attr_by_text", "attr", &texts),
            ("session_by_source", "session", &sources),
            ("placement_by_unit", "placement", "unit_id = ?1"),
            (
                "node_with_nul",
                "node",
                &format!("{} and unit_id > ?1", schema::NODE_WITH_NUL),
            ),
            (
                "body_with_nul",
                "body",
                &format!("{} and text <> ?1", schema::BODY_WITH_NUL),
            ),
        ] {
            let explain = format!("explain query plan select 1 from {table} where {condition}");
            let plan = collect(&mut *reader, &explain, &["1".into()], |row| {
                Ok(text(row, 3)?.to_owned())
            });
            let plan = plan.unwrap().join("\n");
            assert!(plan.contains(index), "{explain}: {plan}");
        }
    }

    /// Two connections that write.
    #[test]
    fn sqlite_is_busy() {
        let folder = Folder::new("busy");
        let path = folder.file("x.db");
        let (one, two) = (
            Home::open(&path, &options()).unwrap(),
            Home::open(&path, &options()).unwrap(),
        );
        let (mut one, mut two) = (one.writer().unwrap(), two.writer().unwrap());
        one.begin(Begin::Write).unwrap();
        let busy = two.begin(Begin::Write).unwrap_err();
        assert!(matches!(busy, StoreError::Conflict(_)), "{busy}");
        one.commit().unwrap();
        two.begin(Begin::Write).unwrap();
    }

    /// A file that is no longer the one that was opened, and one that is damaged.
    #[cfg(unix)]
    #[test]
    fn sqlite_file_changes() {
        let folder = Folder::new("changes");
        let (path, aside) = (folder.file("x.db"), folder.file("aside.db"));
        let home = Home::open(&path, &options()).unwrap();
        let mut writer = home.writer().unwrap();
        std::fs::rename(&path, &aside).unwrap();
        let removed = writer.begin(Begin::Write).unwrap_err().to_string();
        assert!(removed.contains("removed"), "{removed}");
        let other = Home::open(&path, &options()).unwrap();
        let replaced = writer.begin(Begin::Write).unwrap_err().to_string();
        assert!(replaced.contains("replaced"), "{replaced}");
        assert!(
            home.reader().unwrap().data_version().is_err(),
            "a reader of the old file"
        );
        drop((writer, other));
        drop(home);

        let path = folder.file("damaged.db");
        drop(Home::open(&path, &options()).unwrap());
        let mut bytes = std::fs::read(&path).unwrap();
        assert_eq!(&bytes[68..72], b"PACT");
        for byte in &mut bytes[100..] {
            *byte = 0xA5;
        }
        std::fs::write(&path, bytes).unwrap();
        let damaged = Home::open(&path, &options()).unwrap_err();
        assert!(matches!(damaged, StoreError::Damaged(_)), "{damaged}");
    }

    /// A file that is another one when something is written for the first time.
    #[cfg(unix)]
    #[test]
    fn sqlite_file_changes_before_it_is_written() {
        let folder = Folder::new("changes-early");
        let path = folder.file("x.db");
        drop(Home::open(&path, &options()).unwrap());
        let home = Home::open(&path, &options()).unwrap();
        std::fs::rename(&path, folder.file("aside.db")).unwrap();
        drop(Home::open(&path, &options()).unwrap());
        let replaced = home.writer().map(|_| ()).unwrap_err().to_string();
        assert!(replaced.contains("replaced"), "{replaced}");
    }

    /// A full disk: the file may not grow.
    #[test]
    fn sqlite_disk_full() {
        let folder = Folder::new("full");
        let home = Home::open(&folder.file("x.db"), &options()).unwrap();
        let mut writer = home.writer().unwrap();
        writer
            .query("pragma max_page_count = 60", &[], &mut |_| Ok(()))
            .unwrap();
        writer.begin(Begin::Write).unwrap();
        let large = "x".repeat(1 << 20);
        let full = add(&mut *writer, &large).unwrap_err().to_string();
        assert!(full.contains("no space"), "{full}");
        writer.rollback();
        writer.begin(Begin::Write).unwrap();
        add(&mut *writer, "small").unwrap();
        writer.commit().unwrap();
    }

    #[test]
    fn statements_of_both_dialects_name_every_table() {
        use crate::store::database::sql::Backend;
        for dialect in [Backend::Sqlite, Backend::Postgres] {
            let all = schema::statements(dialect).join(";\n");
            for table in schema::TABLES {
                assert!(all.contains(&format!("create table {} (", table.name)));
                assert!(table.columns().count() > 1);
            }
        }
        // A path that is opened without `Home`.
        let folder = Folder::new("alone");
        let path = folder.0.join("x.db");
        assert!(matches!(
            Sqlite::open(&path, FileAccess::Write, BUSY),
            Err(StoreError::Missing(_))
        ));
    }

    #[cfg(all(unix, feature = "postgres"))]
    mod on_postgres {
        use super::*;
        use crate::store::server::Server;

        fn server() -> Option<Server> {
            match Server::start() {
                Ok(server) => Some(server),
                Err(why) => {
                    println!("SKIPPED: {why}");
                    None
                }
            }
        }

        #[test]
        fn postgres() {
            let Some(server) = server() else { return };
            let folder = Folder::new("postgres");
            let url = server.url("test_1");
            let must_exist = HomeOptions {
                must_exist: true,
                ..options()
            };
            let missing = Home::open(&url, &must_exist).unwrap_err();
            assert!(matches!(missing, StoreError::Missing(_)), "{missing}");
            let home = Home::open(&url, &options()).unwrap();
            transactions(&home);
            leftovers(&home);
            values(&mut *home.writer().unwrap());
            backups(&home, &folder);
            drop(home);
            layouts(&url);

            // Two schemas of one database do not disturb each other.
            let one = Home::open(&server.url("one"), &options()).unwrap();
            let two = Home::open(&server.url("two"), &options()).unwrap();
            let mut reader = two.reader().unwrap();
            let before = reader.data_version().unwrap();
            add(&mut *one.writer().unwrap(), "a").unwrap();
            assert_eq!(reader.data_version().unwrap(), before);
            assert_eq!(names(&mut *reader), [""; 0]);
            assert!(add(&mut *reader, "a").is_err(), "a reader writes nothing");
            let other = Home::open(&server.url("public"), &options());
            assert!(other.is_ok(), "a schema that is empty");
        }

        /// Writers of two connections: those that share rows, and one that must be alone.
        #[test]
        fn postgres_writers() {
            let Some(server) = server() else { return };
            let url = server.url("pactql");
            let (one, two) = (
                Home::open(&url, &options()).unwrap(),
                Home::open(&url, &options()).unwrap(),
            );
            let (mut one, mut two) = (one.writer().unwrap(), two.writer().unwrap());
            one.begin(Begin::Write).unwrap();
            two.begin(Begin::Write).unwrap();
            add(&mut *one, "a").unwrap();
            add(&mut *two, "b").unwrap();
            // The row of another transaction that has not ended is waited for.
            let busy = add(&mut *two, "a").unwrap_err();
            assert!(matches!(busy, StoreError::Conflict(_)), "{busy}");
            let lost = two.commit().unwrap_err().to_string();
            assert!(lost.contains("nothing was written"), "{lost}");
            one.commit().unwrap();
            assert_eq!(names(&mut *two), ["a"]);
            one.begin(Begin::Alone).unwrap();
            let busy = two.begin(Begin::Write).unwrap_err();
            assert!(matches!(busy, StoreError::Conflict(_)), "{busy}");
            one.rollback();
            two.begin(Begin::Write).unwrap();
            two.rollback();
            let long = "é".repeat(2000);
            // Texts that repeat are compressed before their length is looked at.
            add(&mut *two, &long).unwrap();
        }

        /// A server that goes away: an error inside a transaction, a new connection before the next.
        #[test]
        fn postgres_restarts() {
            let Some(mut server) = server() else { return };
            let home = Home::open(&server.url("pactql"), &options()).unwrap();
            let mut writer = home.writer().unwrap();
            let mut reader = home.reader().unwrap();
            add(&mut *writer, "a").unwrap();
            let version = reader.data_version().unwrap();

            server.restart();
            assert_eq!(names(&mut *reader), ["a"]);
            assert_ne!(
                reader.data_version().unwrap(),
                version,
                "it may have missed some"
            );
            writer.begin(Begin::Write).unwrap();
            add(&mut *writer, "b").unwrap();
            server.restart();
            let lost = add(&mut *writer, "c").unwrap_err();
            assert!(matches!(lost, StoreError::Database(_)), "{lost}");
            let lost = writer.commit().unwrap_err();
            assert!(matches!(lost, StoreError::Database(_)), "{lost}");
            add(&mut *writer, "d").unwrap();
            assert_eq!(names(&mut *reader), ["a", "d"]);

            writer.begin(Begin::Write).unwrap();
            add(&mut *writer, "e").unwrap();
            server.restart();
            let lost = writer.commit().unwrap_err().to_string();
            assert!(lost.contains("not known"), "{lost}");
            writer.begin(Begin::Write).unwrap();
            assert_eq!(names(&mut *writer), ["a", "d"]);
            drop(writer);

            server.kill();
            let down = home.writer().unwrap().begin(Begin::Write).unwrap_err();
            assert!(matches!(down, StoreError::Database(_)), "{down}");
            assert!(reader.data_version().is_err());
            server.resume();
            assert_eq!(names(&mut *reader), ["a", "d"]);
            add(&mut *home.writer().unwrap(), "f").unwrap();
        }
        /// A thread that runs the tasks of a runtime: the client library refuses to wait there.
        #[test]
        fn postgres_in_a_task() {
            let Some(server) = server() else { return };
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime.unwrap().block_on(async {
                let home = Home::open(&server.url("pactql"), &options()).unwrap();
                transactions(&home);
                leftovers(&home);
                values(&mut *home.writer().unwrap());
            });
        }
    }
}
