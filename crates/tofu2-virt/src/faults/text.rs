//! Faults as text: `at_ns kind key=value …`, one line each. Times are in nanoseconds with up to
//! three decimals.

use super::{BadFault, Fault, FaultKind, Faults};
use rdma_fabric::Time;
use std::{cell::Cell, fmt, str::FromStr, time::Duration};

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let picos = self.at.as_picos();
        write!(f, "{}.{:03} ", picos / 1000, picos % 1000)?;
        let (name, values) = self.kind.in_words();
        f.write_str(name)?;
        values.into_iter().try_for_each(|(key, value)| write!(f, " {key}={value}"))
    }
}

impl FaultKind {
    /// Returns its name and its values by key, with durations in nanoseconds.
    pub(super) fn in_words(self) -> (&'static str, Vec<(&'static str, u128)>) {
        let number = |key, number: u32| (key, u128::from(number));
        let ns = |key, duration: Duration| (key, duration.as_nanos());
        match self {
            FaultKind::NodeStop { node } => ("node-stop", vec![number("node", node)]),
            FaultKind::LinkSlow { from, to, extra, lasts } => {
                ("link-slow", vec![number("from", from), number("to", to), ns("extra", extra), ns("lasts", lasts)])
            }
            FaultKind::LinkDown { from, to, lasts } => {
                ("link-down", vec![number("from", from), number("to", to), ns("lasts", lasts)])
            }
            FaultKind::MrqOverflow { rank } => ("mrq-overflow", vec![number("rank", rank)]),
            FaultKind::LateCompletion { rank, by } => ("late-completion", vec![number("rank", rank), ns("by", by)]),
            FaultKind::LateCredit { rank, by } => ("late-credit", vec![number("rank", rank), ns("by", by)]),
            FaultKind::QueueStall { rank, engine, number: queue, lasts } => {
                let (engine, queue) = (number("engine", engine.into()), number("number", queue.into()));
                ("queue-stall", vec![number("rank", rank), engine, queue, ns("lasts", lasts)])
            }
            FaultKind::PartialPut { rank } => ("partial-put", vec![number("rank", rank)]),
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|fault| writeln!(f, "{fault}"))
    }
}

impl FromStr for Fault {
    type Err = BadFault;

    fn from_str(line: &str) -> Result<Self, BadFault> {
        let bad = |problem: String| BadFault { number: None, line: line.to_owned(), problem };
        let mut words = line.split_whitespace();
        let time = words.next().ok_or_else(|| bad("it is empty".into()))?;
        let (ns, decimals) = time.split_once('.').unwrap_or((time, ""));
        let number = |text: &str| text.parse::<u64>().map_err(|error| bad(format!("`{text}`: {error}")));
        if decimals.len() > 3 {
            return Err(bad(format!("`{time}` has more than three decimals")));
        }
        let whole = number(ns)?.checked_mul(1000).ok_or_else(|| bad("its time is too long".into()))?;
        let at = Time::from_picos(whole.saturating_add(number(&format!("{decimals:0<3}"))?));
        let name = words.next().ok_or_else(|| bad("nothing happens".into()))?;
        let mut values = Vec::new();
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(|| bad(format!("`{word}` is not key=value")))?;
            values.push((key, number(value)?));
        }
        let used = Cell::new(0usize);
        let value = |key: &str| -> Result<u64, BadFault> {
            used.set(used.get().saturating_add(1));
            let found = values.iter().find(|(known, _)| *known == key);
            found.map(|(_, value)| *value).ok_or_else(|| bad(format!("`{key}=` is missing")))
        };
        let too_large = |value: u64| bad(format!("{value} is too large"));
        let small = |key: &str| value(key).and_then(|value| u32::try_from(value).map_err(|_| too_large(value)));
        let tiny = |key: &str| value(key).and_then(|value| u8::try_from(value).map_err(|_| too_large(value)));
        let ns = |key: &str| value(key).map(Duration::from_nanos);
        let kind = match name {
            "node-stop" => FaultKind::NodeStop { node: small("node")? },
            "link-slow" => {
                let (from, to) = (small("from")?, small("to")?);
                FaultKind::LinkSlow { from, to, extra: ns("extra")?, lasts: ns("lasts")? }
            }
            "link-down" => FaultKind::LinkDown { from: small("from")?, to: small("to")?, lasts: ns("lasts")? },
            "mrq-overflow" => FaultKind::MrqOverflow { rank: small("rank")? },
            "late-completion" => FaultKind::LateCompletion { rank: small("rank")?, by: ns("by")? },
            "late-credit" => FaultKind::LateCredit { rank: small("rank")?, by: ns("by")? },
            "queue-stall" => {
                let (rank, engine, number) = (small("rank")?, tiny("engine")?, tiny("number")?);
                FaultKind::QueueStall { rank, engine, number, lasts: ns("lasts")? }
            }
            "partial-put" => FaultKind::PartialPut { rank: small("rank")? },
            other => return Err(bad(format!("there is no `{other}`"))),
        };
        if used.get() != values.len() {
            return Err(bad(format!("`{name}` takes {} values", used.get())));
        }
        Ok(Fault { at, kind })
    }
}

impl FromStr for Faults {
    type Err = BadFault;

    /// Parses a list of faults. Lines that are empty or begin with `#` are skipped.
    fn from_str(text: &str) -> Result<Self, BadFault> {
        let lines = text.lines().map(str::trim).zip(1..);
        let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        let numbered = |(line, number): (&str, usize)| match line.parse() {
            Ok(fault) => Ok((fault, Some(number))),
            Err(bad) => Err(BadFault { number: Some(number), ..bad }),
        };
        Ok(Faults::of_lines(lines.map(numbered).collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Odds;

    #[test]
    fn a_record_reads_back_as_what_it_was() {
        for seed in 0..50 {
            let faults = Faults::drawn(seed, &Odds { faults: 40, ..Odds::new(16, 4) });
            let text = faults.to_string();
            assert_eq!(text.parse(), Ok(faults), "seed {seed}:\n{text}");
        }
    }

    #[test]
    fn what_is_no_fault_is_told_by_its_line() {
        for (line, problem) in [
            ("", "it is empty"),
            ("12", "nothing happens"),
            ("x node-stop node=1", "`x`: invalid digit found in string"),
            ("1.2345 node-stop node=1", "`1.2345` has more than three decimals"),
            ("1 fire", "there is no `fire`"),
            ("1 node-stop", "`node=` is missing"),
            ("1 node-stop node", "`node` is not key=value"),
            ("1 node-stop node=4294967296", "4294967296 is too large"),
            ("1 node-stop node=1 rank=2", "`node-stop` takes 1 values"),
        ] {
            assert_eq!(line.parse::<Fault>().unwrap_err().problem, problem, "{line}");
        }
        let text = "# a comment\n\n5.25 partial-put rank=3\n";
        let kind = FaultKind::PartialPut { rank: 3 };
        assert_eq!(text.parse(), Ok(Faults::new(vec![Fault { at: Time::from_picos(5250), kind }])));
        let error = "# a comment\n\n7 fire\n".parse::<Faults>().unwrap_err();
        assert_eq!(error.to_string(), "line 3: `7 fire` is not a fault: there is no `fire`");
    }
}
