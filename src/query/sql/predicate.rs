//! The tests of a step as conditions on a row `n` of `node`, and which other rows they read (LANGUAGE §5).

use crate::query::ir::{
    Attr, AttrTest, Chain, Class, CompareOp, DepthSet, ExactNumber, Facet, InnerTest, Literal,
    Operand, Test, TypeTest,
};

use crate::tree::timestamp::rfc3339_of_nanos;

use super::dialect::Dialect;
use super::error::Refused;
use super::number::{attr_compares, compares, cut_time, in_list, int_test};
use super::regex::{literal, translate};
use super::words::{all, any, complement};

/// `present`: the document has `created_at_iso`, which follows from the nanoseconds where its column is null.
const HAS_ISO: i64 = 1 << 8;

/// Which rows besides `n` some conditions read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NeededRows {
    /// `d`, the depth of a turn.
    pub(super) depth: bool,
    /// Whether only nodes of turns are of interest, so that `d` is there.
    pub(super) turns: bool,
    /// Whether `p` has turns only, with their depths.
    pub(super) turns_placed: bool,
    /// `c`, the snapshot.
    pub(super) cycle: bool,
    /// `b`, the content.
    pub(super) body: bool,
    /// `np` and `t`, the parent in the unit and above it.
    pub(super) parent: bool,
    /// `y`, where an id came first.
    pub(super) born: bool,
    /// The table `attr`, which needs no join.
    pub(super) attr: bool,
    /// The table `answered`, which needs no join.
    pub(super) answers: bool,
    /// Not rows: whether a step reached from one unit to others, as the root and `^seq` do.
    pub(super) crossed: bool,
}

impl NeededRows {
    pub(super) fn add(&mut self, other: Self) {
        self.depth |= other.depth;
        self.turns |= other.turns;
        self.turns_placed |= other.turns_placed;
        self.cycle |= other.cycle;
        self.body |= other.body;
        self.parent |= other.parent;
        self.born |= other.born;
        self.attr |= other.attr;
        self.answers |= other.answers;
        self.crossed |= other.crossed;
    }

    /// Whether what is read of a unit is the same in all its snapshots.
    pub(super) fn is_fixed(self) -> bool {
        !(self.reads_turns() || self.cycle || self.parent || self.born || self.crossed)
    }

    pub(super) fn reads_turns(self) -> bool {
        self.depth || self.turns_placed
    }
}

/// Writes what conditions with selectors inside look up.
pub(super) trait StepConditions {
    /// Returns the names of the tables, of which one is enough. `cores`: whether the step may match implicit cores.
    fn looked_up(&mut self, test: &InnerTest<Chain>, cores: bool) -> Result<Vec<String>, Refused>;
}

/// Where a node begins in document order, of rows with the place of its unit.
pub(super) fn begin(place: &str) -> String {
    format!("{place} * 2147483648 + n.pre")
}

pub(super) struct Predicates<'p> {
    pub(super) dialect: Dialect,
    pub(super) attr: String,
    /// Whether the step may match an implicit core, whose headers are null.
    pub(super) core: bool,
    /// The alias of the rows with the session and the snapshot of `n`; `p` is the placement of its unit.
    pub(super) rows: &'static str,
    /// Whether the root or `^seq` among those rows is joined to the unit of `n`, `w`.
    pub(super) wide: bool,
    /// Whether a row is of interest that does not pass.
    pub(super) optional: bool,
    pub(super) needs: NeededRows,
    /// What conditions on the nodes of a step look up.
    pub(super) step: Option<Box<dyn StepConditions + 'p>>,
}

pub(super) const DEPTH: &str = "coalesce(n.base_depth, d.depth)";

/// The ttl of a node as it reads in a snapshot.
pub(super) fn ttl(node: &str, snapshot: &str) -> String {
    format!(
        "case when {node}.expires is null then {node}.ttl when {node}.expires > {snapshot}.cycle \
         then {node}.expires - {snapshot}.cycle else 0 end"
    )
}

pub(super) const PARENT: &str = "coalesce(np.id, case when n.parent_pre is null then t.parent end)";

impl Predicates<'_> {
    pub(super) fn new(dialect: Dialect, attr: String, core: bool, rows: &'static str) -> Self {
        Self {
            dialect,
            attr,
            core,
            rows,
            wide: false,
            optional: false,
            needs: NeededRows::default(),
            step: None,
        }
    }

    pub(super) fn test(&mut self, test: &Test) -> Result<String, Refused> {
        match test {
            Test::Type(test) => Ok(type_test(*test)),
            Test::Depth(set) => Ok(self.depth(set)),
            Test::Attr(test) => self.attr(test),
            Test::Inner(test) => self.inner(test),
        }
    }

    /// The conditions of all tests of a step. Several tags that it has are one condition.
    pub(super) fn tests(&mut self, tests: &[Test]) -> Result<Vec<String>, Refused> {
        let mut tags = Vec::new();
        let mut conditions = Vec::new();
        let wanted = tests.iter().filter_map(Test::attr);
        let several = wanted.filter_map(AttrTest::tag).count() > 1;
        for test in tests {
            match test.attr().and_then(|test| Some((test, test.tag()?))) {
                Some((test, text)) if several => {
                    Compared::new(test)?;
                    tags.push(text.to_owned());
                }
                _ => conditions.push(self.test(test)?),
            }
        }
        if several {
            self.needs.attr = true;
            conditions.push(self.tagged(&distinct(tags)));
        }
        Ok(conditions)
    }

    fn depth(&mut self, set: &DepthSet) -> String {
        let near = set.ranges().iter().all(|(_, high)| *high <= 0);
        let turns = set.ranges().iter().all(|(low, _)| *low >= 1);
        let column = match (near, turns) {
            (true, _) => "n.base_depth",
            (false, true) if self.rows == "p" && !self.optional => {
                self.needs.turns_placed = true;
                "p.depth"
            }
            (false, turns) => {
                self.needs.depth = true;
                self.needs.turns |= turns && !self.optional;
                if turns { "d.depth" } else { DEPTH }
            }
        };
        let mut single = Vec::new();
        let mut parts = Vec::new();
        for (low, high) in set.ranges() {
            match (low, high) {
                (low, high) if low == high => single.push(self.dialect.int(*low)),
                (-1, &i64::MAX) => parts.push(format!("{column} is not null")),
                (low, &i64::MAX) => parts.push(format!("{column} >= {low}")),
                (low, high) => {
                    let low = self.dialect.int(*low);
                    parts.push(format!("{column} between {low} and {high}"));
                }
            }
        }
        if !single.is_empty() {
            parts.push(in_list(column, &single, false, false));
        }
        any(parts)
    }

    fn attr(&mut self, test: &AttrTest) -> Result<String, Refused> {
        let compared = &Compared::new(test)?;
        // The column of a number; and whether an implicit core has none, though its row has one.
        let (column, own) = match &test.attr {
            Attr::Id => return self.text(compared, "n.id"),
            Attr::Role => return self.text(compared, "n.role"),
            Attr::Key => return self.text(compared, "n.key"),
            Attr::StoredKind => return self.text(compared, "n.kind"),
            Attr::Kind => return self.text(compared, "coalesce(n.kind, n.type_sub)"),
            Attr::NodeType | Attr::StoredType => return self.node_type(compared),
            Attr::Parent => {
                self.needs.parent = true;
                if !self.core {
                    return self.text(compared, PARENT);
                }
                let own = format!("(case when n.id is not null then {PARENT} end)");
                return self.text(compared, &own);
            }
            Attr::CreatedAtIso => return self.created_at_iso(compared),
            Attr::Content => return self.content(compared),
            Attr::Tags => {
                self.needs.attr = true;
                return self.tags(compared);
            }
            Attr::Custom(name) => {
                self.needs.attr = true;
                return self.custom(compared, name);
            }
            Attr::ContentHash => {
                let reason = "a node that stores no hash would have to be hashed by the database";
                return Err(Refused::new(test, reason));
            }
            Attr::Bytes => (self.size(test)?, true),
            Attr::Tokens => (format!("({} + 3) / 4", self.size(test)?), true),
            Attr::Offset => ("n.sibling_offset".to_owned(), false),
            Attr::Priority => ("n.priority".to_owned(), true),
            Attr::CreatedAtNs => ("n.created_at_ns".to_owned(), true),
            Attr::CreationIndex => ("n.creation_index".to_owned(), true),
            Attr::Cycle => ("n.cycle".to_owned(), false),
            Attr::Cadence => ("n.cadence".to_owned(), false),
            Attr::Ttl => {
                self.needs.cycle = true;
                (format!("({})", ttl("n", "c")), false)
            }
            Attr::Facet(Facet::Depth) => {
                self.needs.depth = true;
                (DEPTH.to_owned(), false)
            }
            Attr::Facet(Facet::Sdepth) => ("n.level".to_owned(), true),
            Attr::Facet(Facet::BornTurn) => {
                self.needs.born = true;
                (BORN.to_owned(), true)
            }
            Attr::Facet(Facet::Age) => {
                self.needs.born = true;
                self.needs.cycle = true;
                // The nearest i64: no step of this leaves them.
                let least = self.dialect.int(i64::MIN);
                let age = format!(
                    "case when {BORN} < 0 and c.cycle > 9223372036854775807 + {BORN} \
                     then 9223372036854775807 when {BORN} > 0 and c.cycle < {least} + {BORN} \
                     then {least} else c.cycle - {BORN} end"
                );
                (age, true)
            }
        };
        let column = match (own, self.core, column.contains(' ')) {
            (false, ..) | (true, false, false) => column,
            (true, true, _) => format!("(case when n.id is not null then {column} end)"),
            (true, false, true) => format!("({column})"),
        };
        let literals = &compared.literals;
        Ok(int_test(self.dialect, &column, test.op, literals))
    }

    /// A column of text, or null.
    fn text(&self, compared: &Compared<'_>, column: &str) -> Result<String, Refused> {
        let quoted = || compared.texts().map(|text| self.dialect.text(&text));
        match compared.test.op {
            op @ (CompareOp::Eq | CompareOp::Ne) => {
                let values = distinct(quoted().collect());
                Ok(in_list(column, &values, compared.null, op == CompareOp::Ne))
            }
            CompareOp::Matches => self.search(compared, column),
            op => Ok(any(quoted().map(|text| format!("{column} {op} {text}")))),
        }
    }

    /// Whether a pattern is found in a column of text. False where that is null.
    pub(super) fn search(&self, compared: &Compared<'_>, column: &str) -> Result<String, Refused> {
        let Some(pattern) = compared.texts().next() else {
            return Ok("false".to_owned());
        };
        if let Some(text) = literal(&pattern) {
            return Ok(self.dialect.contains(column, &text));
        }
        let there = || {
            let pattern = translate(self.dialect, &pattern).map_err(|why| {
                let reason = format!("the pattern means something else there, as {why}");
                Refused::new(compared.test, reason)
            });
            Ok(self.dialect.text(&pattern?))
        };
        Ok(match self.dialect {
            Dialect::Sqlite => format!("pactql_search({column}, {})", self.dialect.text(&pattern)),
            Dialect::DuckDb => format!("regexp_matches({column}, {})", there()?),
            Dialect::Postgres => format!("{column} ~ {}", there()?),
            Dialect::Spark => format!("{column} rlike {}", there()?),
        })
    }

    fn node_type(&self, compared: &Compared<'_>) -> Result<String, Refused> {
        let whole = "case when n.type_sub is null then n.type_head \
                     else n.type_head || ':' || n.type_sub end";
        let op = compared.test.op;
        if !op.is_equality() {
            return self.text(compared, &format!("({whole})"));
        }
        let stored = compared.test.attr == Attr::StoredType;
        let equal = any(compared.texts().map(|text| match text.split_once(':') {
            Some((head, sub)) => {
                let (head, sub) = (self.dialect.text(head), self.dialect.text(sub));
                format!("(n.type_head = {head} and n.type_sub = {sub})")
            }
            None if stored => {
                let head = self.dialect.text(&text);
                format!("(n.type_head = {head} and n.type_sub is null)")
            }
            None => format!("n.type_head = {}", self.dialect.text(&text)),
        }));
        Ok(of_equality(op, equal))
    }

    fn created_at_iso(&self, compared: &Compared<'_>) -> Result<String, Refused> {
        let derived = format!("(n.created_at_iso is null and (n.present & {HAS_ISO}) <> 0)");
        let stored = |op: CompareOp, text: &str| {
            let text = self.dialect.text(text);
            format!("n.created_at_iso {op} {text}")
        };
        let one = |op: CompareOp, text: &str| -> String {
            let above = matches!(op, CompareOp::Le | CompareOp::Gt);
            let least = cut_time(text, above, rfc3339_of_nanos);
            let follows = match (op, least) {
                (CompareOp::Eq, Some(nanos)) if rfc3339_of_nanos(nanos) == text => {
                    format!("n.created_at_ns = {}", self.dialect.int(nanos))
                }
                (CompareOp::Eq, _) => "false".to_owned(),
                (CompareOp::Lt | CompareOp::Le, None) => "true".to_owned(),
                (op, least) => compares("n.created_at_ns", op, least, |it| self.dialect.int(it)),
            };
            any([stored(op, text), all([derived.clone(), follows])])
        };
        Ok(match compared.test.op {
            op @ (CompareOp::Eq | CompareOp::Ne) => {
                let equal = compared.texts().map(|text| one(CompareOp::Eq, &text));
                let absent = format!("(n.created_at_iso is null and (n.present & {HAS_ISO}) = 0)");
                of_equality(op, any(equal.chain(compared.null.then_some(absent))))
            }
            CompareOp::Matches => {
                let made = self.dialect.iso("n.created_at_ns");
                let text = format!("(case when {derived} then {made} else n.created_at_iso end)");
                self.search(compared, &text)?
            }
            op => any(compared.texts().map(|text| one(op, &text))),
        })
    }

    fn rows(&self, name: &str) -> String {
        let session = if self.dialect.is_parquet() {
            "a.session_id = n.session_id and "
        } else {
            ""
        };
        let name = self.dialect.text(name);
        let table = &self.attr;
        format!(
            "from {table} a where {session}a.unit_id = n.unit_id and a.pre = n.pre and a.name = {name}"
        )
    }

    fn tagged(&self, texts: &[String]) -> String {
        let rows = self.rows("tags");
        if let [text] = texts {
            let text = self.dialect.text(text);
            return format!("exists (select 1 {rows} and a.ordinal >= 0 and a.text = {text})");
        }
        let list: Vec<String> = texts.iter().map(|text| self.dialect.text(text)).collect();
        let (list, count) = (list.join(", "), list.len());
        format!(
            "(select count(distinct a.text) {rows} and a.ordinal >= 0 and a.text in ({list})) = {count}"
        )
    }

    fn tags(&self, compared: &Compared<'_>) -> Result<String, Refused> {
        let rows = self.rows("tags");
        let has = |condition: &str| format!("exists (select 1 {rows}{condition})");
        let texts = distinct(compared.texts().collect());
        let equal = match (compared.null, texts.is_empty()) {
            (true, true) => format!("not {}", has("")),
            // A list never has null as a member, and one value never equals two.
            (true, false) => "false".to_owned(),
            (false, _) => self.tagged(&texts),
        };
        Ok(match compared.test.op {
            CompareOp::Eq => equal,
            CompareOp::Ne => complement(&equal),
            CompareOp::Matches => match self.search(compared, "a.text")? {
                found if found == "false" => found,
                found => has(&format!(" and {found}")),
            },
            _ => "false".to_owned(),
        })
    }

    fn custom(&self, compared: &Compared<'_>, name: &str) -> Result<String, Refused> {
        let Compared {
            test,
            literals,
            null,
        } = compared;
        if name.contains('\0') {
            return Err(Refused::new(test, "no table has a name with U+0000"));
        }
        let rows = self.rows(name);
        let has = |condition: &str| format!("exists (select 1 {rows} and {condition})");
        match test.op {
            CompareOp::Eq | CompareOp::Ne => {
                let same = literals.iter().filter(|l| ***l != Literal::Null);
                let same = same.map(|literal| self.same(test, literal));
                let same = distinct(same.collect::<Result<_, _>>()?);
                let mut parts = Vec::new();
                match (&same[..], null) {
                    ([one], false) => parts.push(has(one)),
                    ([], _) => {}
                    (many, null) => {
                        let one = any(many.iter().cloned());
                        parts.push(has(&format!("a.ordinal = -1 and {one}")));
                        if !null {
                            let member = |one: &String| has(&format!("a.ordinal >= 0 and {one}"));
                            parts.push(all(many.iter().map(member)));
                        }
                    }
                }
                if *null {
                    let absent = has("a.ordinal = -1 and a.type <> 'null'");
                    parts.push(format!("not {absent}"));
                }
                Ok(of_equality(test.op, any(parts)))
            }
            CompareOp::Matches => Ok(match self.search(compared, "a.text")? {
                found if found == "false" => found,
                found => has(&found),
            }),
            op => {
                let ordered = literals
                    .iter()
                    .map(|literal| self.ordered(test, op, literal));
                let ordered = any(ordered.collect::<Result<Vec<_>, _>>()?);
                Ok(match &*ordered {
                    "false" => ordered,
                    ordered => has(&format!("a.ordinal = -1 and {ordered}")),
                })
            }
        }
    }

    fn same(&self, test: &AttrTest, literal: &Literal) -> Result<String, Refused> {
        Ok(match ExactNumber::from_literal(literal) {
            Some(number) => {
                let equal = self.compared(test, CompareOp::Eq, &number)?;
                all(["a.type in ('int', 'real')".to_owned(), equal])
            }
            None => {
                let text = self.dialect.text(&literal.written().unwrap_or_default());
                format!("(a.type in ('text', 'bool') and a.text = {text})")
            }
        })
    }

    fn compared(
        &self,
        test: &AttrTest,
        op: CompareOp,
        number: &ExactNumber<'_>,
    ) -> Result<String, Refused> {
        let reason = "no type of a database holds a decimal of this many digits";
        attr_compares(self.dialect, "a", op, number).ok_or_else(|| Refused::new(test, reason))
    }

    /// A row of `attr` compared with a literal: as numbers where both are, else as texts.
    fn ordered(
        &self,
        test: &AttrTest,
        op: CompareOp,
        literal: &Literal,
    ) -> Result<String, Refused> {
        let Some(text) = literal.written() else {
            return Ok("false".to_owned());
        };
        let as_number = match literal {
            Literal::Text(text) => ExactNumber::of_text(text),
            literal => ExactNumber::from_literal(literal),
        };
        let text = format!("a.text {op} {}", self.dialect.text(&text));
        let Some(number) = as_number else {
            return Ok(text);
        };
        let numbers = self.compared(test, op, &number)?;
        let no_number = "a.int is null and a.real is null and a.big is null";
        // A boolean compares as its text, and has a number for other statements.
        let numbers = all(["a.type <> 'bool'".to_owned(), numbers]);
        let no_number = format!("(a.type = 'bool' or {no_number})");
        Ok(any([numbers, format!("({no_number} and {text})")]))
    }
}

const BORN: &str = "coalesce(n.cycle, y.cycle)";

/// A test of an attribute, and the literals that it compares: several only for `=` and `!=`.
pub(super) struct Compared<'t> {
    pub(super) test: &'t AttrTest,
    literals: Vec<&'t Literal>,
    /// Whether null is among them.
    pub(super) null: bool,
}

impl<'t> Compared<'t> {
    /// U+0000 and parameters are refused.
    pub(super) fn new(test: &'t AttrTest) -> Result<Self, Refused> {
        let operands = match &test.operand {
            Operand::List(operands) => &operands[..],
            operand => std::slice::from_ref(operand),
        };
        let literals = operands.iter().map(|operand| match operand {
            Operand::Literal(Literal::Text(text)) if text.contains('\0') => {
                let reason = "no statement and no table has a text with U+0000";
                Err(Refused::new(test, reason))
            }
            Operand::Literal(literal) => Ok(literal),
            Operand::Param(_) | Operand::List(_) => Err(Refused::parameter(test)),
        });
        let literals: Vec<&Literal> = literals.collect::<Result<_, _>>()?;
        let null = literals.contains(&&Literal::Null);
        Ok(Self {
            test,
            literals,
            null,
        })
    }

    /// The texts of the literals, as they were written; null has none.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        self.literals.iter().filter_map(|literal| literal.written())
    }
}

fn type_test(test: TypeTest) -> String {
    match test {
        TypeTest::Root => "n.class = '^root'".to_owned(),
        TypeTest::Seq => "n.class = '^seq'".to_owned(),
        // Its step has a depth too, which only the units of turns have.
        TypeTest::Anchor => {
            "(n.class in ('^sys', '^ah') or n.class = 'mt' and n.pre = 0)".to_owned()
        }
        TypeTest::TurnOrAnchor => "n.class in ('mt', '^sys', '^ah')".to_owned(),
        TypeTest::Class(Class::Turn) => "n.class = 'mt'".to_owned(),
        TypeTest::Class(Class::Container) => "n.class = 'mc'".to_owned(),
        TypeTest::Class(Class::Block) => "n.class = 'cb'".to_owned(),
    }
}

/// What a comparison by `=` or `!=` is, if this is that by `=`.
pub(super) fn of_equality(op: CompareOp, equal: String) -> String {
    match op {
        CompareOp::Ne => complement(&equal),
        _ => equal,
    }
}

pub(super) fn distinct(mut values: Vec<String>) -> Vec<String> {
    values.sort_unstable();
    values.dedup();
    values
}
