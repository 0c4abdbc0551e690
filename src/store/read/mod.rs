//! Sessions by name, and snapshots out of their rows.

pub(crate) mod calls;
pub(crate) mod catalog;
pub(crate) mod load;
pub(crate) mod open;
pub(crate) mod source;
pub(crate) mod stored;
pub(crate) mod words;

/// The plans of what a part of a session is read with: every table is reached by an index.
#[cfg(test)]
mod plans {
    use std::path::Path;
    use std::time::Duration;

    use crate::store::database::home::{Home, HomeOptions};
    use crate::store::database::sql::{
        Backend, Begin, Database, Each, Savepoint, SqlValue, collect, text,
    };
    use crate::store::error::Result;
    use crate::store::layout::decode::Units;
    use crate::store::layout::encode::Order;
    use crate::store::read::catalog::{by_id, get};
    use crate::store::read::load::{self, Now};

    /// A database that notes the plan of every query.
    struct Planned<'d> {
        database: &'d mut dyn Database,
        plans: Vec<String>,
    }

    impl Database for Planned<'_> {
        fn dialect(&self) -> Backend {
            self.database.dialect()
        }

        fn execute(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<u64> {
            self.database.execute(sql, values)
        }

        fn query(&mut self, sql: &str, values: &[SqlValue<'_>], each: Each<'_>) -> Result<()> {
            let explain = format!("explain query plan {sql}");
            let steps = collect(self.database, &explain, values, |row| {
                Ok(text(row, 3)?.to_owned())
            })?;
            self.plans.push(format!("{sql}\n{}", steps.join("\n")));
            self.database.query(sql, values, each)
        }

        fn begin(&mut self, begin: Begin) -> Result<()> {
            self.database.begin(begin)
        }

        fn commit(&mut self) -> Result<()> {
            self.database.commit()
        }

        fn rollback(&mut self) {
            self.database.rollback();
        }

        fn savepoint(&mut self, what: Savepoint) -> Result<()> {
            self.database.savepoint(what)
        }

        fn now_ns(&mut self) -> Result<i64> {
            self.database.now_ns()
        }

        fn data_version(&mut self) -> Result<i64> {
            self.database.data_version()
        }

        fn backup(&mut self, to: &Path) -> Result<()> {
            self.database.backup(to)
        }

        fn scrub(&mut self, patience: Duration) -> Result<bool> {
            self.database.scrub(patience)
        }

        fn vacuum(&mut self, patience: Duration) -> Result<bool> {
            self.database.vacuum(patience)
        }
    }

    /// SQLite's plans do not depend on what the tables hold, as there are no statistics.
    #[test]
    fn reading_a_part_scans_no_table() {
        let folder = std::env::temp_dir().join(format!("pactql-plans-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("x.db");
        let home = Home::open(path.to_str().unwrap(), &HomeOptions::default()).unwrap();
        let mut reader = home.reader().unwrap();
        let mut database = Planned {
            database: &mut *reader,
            plans: Vec::new(),
        };
        let now = Now {
            session: 1,
            seq: 3,
            saved: true,
        };
        let order = Order {
            rank: 1,
            offset: 0,
            created_at_ns: 0,
            creation_index: 0,
            id: "mt:1".to_owned(),
        };
        assert!(get(&mut database, "a").is_err());
        assert!(by_id(&mut database, 1).unwrap().is_none());
        assert!(load::metas(&mut database, 1, (3, 3)).unwrap().is_empty());
        assert!(load::in_force(&mut database, now, 0).unwrap().is_empty());
        assert!(
            load::newest_turns(&mut database, now, 3)
                .unwrap()
                .is_empty()
        );
        assert_eq!(load::turns_after(&mut database, now, &order).unwrap(), 0);
        assert!(load::with_id(&mut database, 1, 3, "x").unwrap().is_empty());
        assert!(load::places(&mut database, 1, (2, 3)).unwrap().is_empty());
        let mut units = Units::default();
        let many = [1, 2, 3, 4, 5];
        units.read_all(&mut database, &many, true).unwrap();
        units.read_all(&mut database, &many, false).unwrap();
        units.read_all(&mut database, &[1, 2], true).unwrap();
        let plans = std::mem::take(&mut database.plans);
        assert_eq!(plans.len(), 15, "{plans:#?}");
        for plan in &plans {
            assert!(plan.contains("SEARCH"), "{plan}");
            assert!(!plan.contains("SCAN"), "{plan}");
        }
        // The rows come in the order of the key, without sorting.
        assert!(!plans.concat().contains("TEMP B-TREE"), "{plans:#?}");
        drop(reader);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// An export with nothing new asks as many statements of thirty sessions as of three.
    #[cfg(feature = "parquet")]
    #[test]
    fn an_export_asks_no_session_by_itself() {
        use crate::store::copy::export::{ParquetExport, export};

        let folder = std::env::temp_dir().join(format!("pactql-asked-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("x.db");
        let home = Home::open(path.to_str().unwrap(), &HomeOptions::default()).unwrap();
        let asked = [3, 30].map(|sessions| {
        let mut writer = home.writer().unwrap();
        writer.begin(Begin::Write).unwrap();
        for number in 0..sessions {
            let name = format!("{sessions}-{number}");
            let made = crate::store::read::catalog::create(&mut *writer, &name, None, None).unwrap();
            for seq in 1..4 {
                writer
                    .execute(
                        "insert into snapshot (session_id, seq, working, committed_at_ns, meta, hash, check_sum) \
                         values (?1, ?2, ?3, 7, '{}', ?4, 0)",
                        &[made.into(), seq.into(), false.into(), (&[7; 32]).into()],
                    )
                    .unwrap();
            }
        }
        writer.commit().unwrap();
        drop(writer);
        let root = folder.join(sessions.to_string());
        let options = ParquetExport::default();
        let mut last = Vec::new();
        for _ in 0..2 {
            let mut reader = home.reader().unwrap();
            reader.begin(Begin::Read).unwrap();
            let mut database = Planned { database: &mut *reader, plans: Vec::new() };
            export(&mut database, &root, &options).unwrap();
            last = std::mem::take(&mut database.plans);
            reader.commit().unwrap();
        }
        last
    });
        assert_eq!(asked[0].len(), asked[1].len(), "{asked:#?}");
        assert!(asked[0].len() < 8, "{asked:#?}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
