//! A store of many sessions, always the same ones: `cargo run --release --example fleet -- fleet.db 1000`.
//!
//! It is what docs/fleet.md asks and measures: a helpdesk with a tool. Each session has four to nine turns, a commit
//! each; all have one system prompt. Of a thousand sessions one meets a limit.

use std::error::Error;
use std::time::Instant;

use pactql::{Context, Message, Session, Store, context::StepClock};

/// What every session begins with.
const PROMPT: &str = "You answer for a shop that sells bicycles. Look an order up before you say anything \
    about it. A refund above the limit needs a person. Be brief, say what happens next, and never promise a day.";

const QUESTIONS: [&str; 5] = [
    "Where is my order?",
    "The brakes squeal since yesterday.",
    "Can I send the helmet back?",
    "I was charged twice.",
    "When is the workshop open?",
];

/// Numbers that look random and are always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

/// The result of a tool: an order with some lines.
fn order(numbers: &mut Numbers, session: u64, turn: u64) -> String {
    let mut lines = String::new();
    for line in 0..3 + numbers.below(9) {
        let (part, price) = (numbers.below(10_000), numbers.below(90_000));
        lines += &format!(
            "{}{{\"line\":{line},\"part\":\"P-{part:05}\",\"cents\":{price}}}",
            if line > 0 { "," } else { "" }
        );
    }
    let limited = session % 1_000 == 17 && turn == 2;
    let state = if limited {
        "over the refund limit"
    } else {
        "delivered"
    };
    format!("{{\"order\":\"O-{session}-{turn}\",\"state\":\"{state}\",\"lines\":[{lines}]}}")
}

/// A session by its number.
pub(crate) fn session(number: u64) -> Result<Session, Box<dyn Error>> {
    let mut numbers = Numbers(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let start = 1_767_225_600_000_000_000 + i64::try_from(number)? * 60_000_000_000;
    let clock = StepClock::new(start, 1_000_000);
    let mut context = Context::builder().clock(clock).build();
    context.append(Message::system(PROMPT))?;
    for turn in 0..4 + numbers.below(6) {
        let question = QUESTIONS[numbers.below(5) as usize];
        let name = numbers.below(100_000);
        context.append(Message::user(&format!("{question} I am customer {name}.")))?;
        let call = format!("call-{turn}");
        let arguments = format!("{{\"customer\":{name}}}");
        let tool = if numbers.below(8) > 0 {
            "find_order"
        } else {
            "open_hours"
        };
        context.reply(Message::assistant("I look that up.").call(&call, tool, &arguments))?;
        context.append(Message::tool(&call, &order(&mut numbers, number, turn)))?;
        let days = 1 + numbers.below(14);
        let last = format!("It should be with you in {days} days, and I have made a note of it.");
        context.reply(Message::assistant(&last))?;
        context.commit()?;
    }
    let mut lines = Vec::new();
    pactql::logs::write_session(context.history().committed(), None, false, &mut lines)?;
    Ok(Session::from_slice(&lines)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "fleet.db".to_owned());
    let count: u64 = arguments.next().map_or(Ok(20), |count| count.parse())?;
    let begun = Instant::now();
    let store = Store::open(&path)?;
    let mut failed = None;
    let made = (0..count).map_while(|number| match session(number) {
        Ok(session) => Some((format!("support-{number:06}"), session, None)),
        Err(error) => {
            failed = Some(error);
            None
        }
    });
    let imported = store.import_all(made)?;
    if let Some(error) = failed {
        return Err(error);
    }
    println!("{imported} sessions in {path}");
    eprintln!("in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}
