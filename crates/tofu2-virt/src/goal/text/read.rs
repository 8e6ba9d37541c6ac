//! Reading the text format, line by line.

use super::{
    super::{BadSchedule, Builder, Operation, Reason, Schedule, Work, builder::at_most, schedule::ANY},
    words::{Word, Words},
};
use std::{
    collections::{HashMap, hash_map::Entry},
    io::BufRead,
};

impl Schedule {
    /// Reads a schedule from text.
    ///
    /// # Errors
    /// If it isn't one, with the number of the line.
    pub fn read_text(mut text: impl BufRead) -> Result<Schedule, BadSchedule> {
        let mut reader = Reader::default();
        let (mut line, mut number, mut in_comment) = (Vec::new(), 0, false);
        loop {
            line.clear();
            number += 1;
            let at_line = |reason| BadSchedule::Line { line: number, reason };
            if text.read_until(b'\n', &mut line)? == 0 {
                return reader.finish(in_comment).map_err(at_line);
            }
            let mut words = Words::new(&line, in_comment);
            reader.read_line(&mut words).map_err(at_line)?;
            in_comment = words.in_comment;
        }
    }
}

#[derive(Debug, Default)]
struct Reader {
    builder: Option<Builder>,
    /// Whether a rank is open.
    in_rank: bool,
    /// The numbers of the rank's labelled operations.
    labels: HashMap<String, u32>,
    /// Dependencies on labels, which may follow them: later, earlier, whether on its start.
    dependencies: Vec<(String, String, bool)>,
}

impl Reader {
    fn read_line(&mut self, words: &mut Words<'_>) -> Result<(), Reason> {
        loop {
            let word = words.next()?;
            match (word, self.in_rank) {
                (Word::End, _) => return Ok(()),
                (Word::Name("num_ranks"), false) if self.builder.is_none() => {
                    let ranks = words.number("the number of ranks")?;
                    at_most("the number of ranks", ranks, u64::from(u32::MAX) - 1)?;
                    self.builder = Some(Builder::new(ranks as u32)?);
                }
                (Word::Name("rank"), false) => self.begin_rank(words)?,
                (Word::Sign('}'), true) => self.end_rank()?,
                (Word::Name(keyword @ ("send" | "recv" | "calc")), true) => return self.operation(keyword, words),
                (Word::Name(label), true) => return self.labelled(label, words),
                (other, true) => return Err(other.instead_of("an operation, a label or `}`")),
                (other, false) => return Err(other.instead_of("`num_ranks` first, then `rank`s")),
            }
        }
    }

    fn builder(&mut self) -> Result<&mut Builder, Reason> {
        let found = "`rank`".to_owned();
        self.builder.as_mut().ok_or(Reason::Expected { expected: "`num_ranks` first", found })
    }

    fn begin_rank(&mut self, words: &mut Words<'_>) -> Result<(), Reason> {
        let found = words.number("the number of the rank")?;
        let builder = self.builder()?;
        let expected = builder.rank();
        if expected == builder.ranks() {
            at_most("rank", found, u64::from(expected) - 1)?;
        }
        if found != u64::from(expected) {
            return Err(Reason::OutOfOrder { found, expected });
        }
        words.sign('{', "`{`")?;
        self.in_rank = true;
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), Reason> {
        let dependencies = core::mem::take(&mut self.dependencies);
        for (later, earlier, on_start) in dependencies {
            let number = |label: String| match self.labels.get(&label) {
                Some(number) => Ok(*number),
                None => Err(Reason::NoSuchOperation(label)),
            };
            let (later, earlier) = (number(later)?, number(earlier)?);
            let builder = self.builder()?;
            let (later, earlier) = (builder.label(later)?, builder.label(earlier)?);
            if on_start { builder.irequires(later, earlier) } else { builder.requires(later, earlier) }?;
        }
        self.labels.clear();
        self.in_rank = false;
        self.builder()?.end_rank()
    }

    /// Reads the words after a label: an operation, or a dependency.
    fn labelled(&mut self, label: &str, words: &mut Words<'_>) -> Result<(), Reason> {
        let on_start = match words.next()? {
            Word::Sign(':') => {
                let number = self.builder()?.added();
                match self.labels.entry(label.to_owned()) {
                    Entry::Vacant(free) => free.insert(number),
                    Entry::Occupied(_) => return Err(Reason::SameLabel(label.to_owned())),
                };
                return match words.next()? {
                    Word::Name(keyword) => self.operation(keyword, words),
                    other => Err(other.instead_of("`send`, `recv` or `calc`")),
                };
            }
            Word::Name("requires") => false,
            Word::Name("irequires") => true,
            other => return Err(other.instead_of("`:`, `requires` or `irequires`")),
        };
        match words.next()? {
            Word::Name(earlier) => self.dependencies.push((label.to_owned(), earlier.to_owned(), on_start)),
            other => return Err(other.instead_of("a label")),
        }
        words.end()
    }

    fn operation(&mut self, keyword: &str, words: &mut Words<'_>) -> Result<(), Reason> {
        let operation = match keyword {
            "send" => {
                let bytes = bytes(words, "to")?;
                let to = number(words, "rank", ANY - 1)?;
                attributes(words, |tag| match tag {
                    Some(tag) => Ok(Work::Send { to, bytes, tag }),
                    None => Err(Reason::WildcardSend),
                })?
            }
            "recv" => {
                let bytes = bytes(words, "from")?;
                let from = number_or_any(words, "rank", ANY - 1)?;
                attributes(words, |tag| Ok(Work::Recv { from, bytes, tag }))?
            }
            "calc" => {
                let nanoseconds = words.number("nanoseconds")?;
                let cpu = match words.next()? {
                    Word::Name("cpu") => number(words, "CPU", u8::MAX.into())? as u8,
                    Word::End => 0,
                    other => return Err(other.instead_of("`cpu` or the end of the line")),
                };
                words.end()?;
                Operation { work: Work::Calc { nanoseconds }, cpu, nic: 0 }
            }
            other => return Err(Word::Name(other).instead_of("`send`, `recv` or `calc`")),
        };
        self.builder()?.add(operation).map(|_| ())
    }
}

impl Reader {
    fn finish(self, in_comment: bool) -> Result<Schedule, Reason> {
        let end = |expected| Err(Reason::Expected { expected, found: "the end of the text".to_owned() });
        match self.builder {
            _ if in_comment => end("`*/`"),
            _ if self.in_rank => end("`}`"),
            None => end("`num_ranks`"),
            Some(builder) => builder.finish(),
        }
    }
}

/// Reads the length of a message and the word before its peer.
fn bytes(words: &mut Words<'_>, direction: &'static str) -> Result<u64, Reason> {
    let bytes = words.number("a number of bytes")?;
    words.keyword("b")?;
    words.keyword(direction)?;
    Ok(bytes)
}

/// Reads the tag, CPU and interface of a message, in any order, up to the end of the line.
fn attributes(words: &mut Words<'_>, work: impl Fn(Option<u32>) -> Result<Work, Reason>) -> Result<Operation, Reason> {
    let (mut tag, mut cpu, mut nic) = (Some(0), 0, 0);
    loop {
        match words.next()? {
            Word::Name("tag") => tag = number_or_any(words, "tag", ANY - 1)?,
            Word::Name("cpu") => cpu = number(words, "CPU", u8::MAX.into())? as u8,
            Word::Name("nic") => nic = number(words, "interface", u8::MAX.into())? as u8,
            Word::End => return Ok(Operation { work: work(tag)?, cpu, nic }),
            other => return Err(other.instead_of("`tag`, `cpu`, `nic` or the end of the line")),
        }
    }
}

fn number(words: &mut Words<'_>, what: &'static str, most: u32) -> Result<u32, Reason> {
    let number = words.number("a number")?;
    at_most(what, number, most.into())?;
    Ok(number as u32)
}

fn number_or_any(words: &mut Words<'_>, what: &'static str, most: u32) -> Result<Option<u32>, Reason> {
    match words.next()? {
        Word::Any => Ok(None),
        Word::Number(number) => {
            at_most(what, number, most.into())?;
            Ok(Some(number as u32))
        }
        other => Err(other.instead_of("a number or `-1`")),
    }
}
