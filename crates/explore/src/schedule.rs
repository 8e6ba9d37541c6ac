//! A run encoded as one word: the memory that its ranks share, and its moves.
//!
//! `A0+80,f2,B1-:Bb0` means that rank 0's word at byte 80 of region 0 and fact 2 are touched by
//! more than their owner's CPU, and that rank 1's region 1 may be addressed after it was dropped;
//! all of this determines where ranks stop. Then rank 1's CPU ran, and the first operation that it
//! had in flight happened. `B2` is a run of task 2 on rank 1's CPU, `b0'` the read of an atomic
//! that writes later, `b0=` the write of the first word that atomics have changed in rank 1's network
//! interface, and `b!` a jump of rank 1's clock. `b~` is rank 1's death, `a?b` is rank 0
//! learning of it, and `b-` is the loss of rank 1's operations in flight when no rank is left to
//! learn of the death.

use crate::{
    cell::{Cells, Home},
    dropped::Holding,
    world::Move,
};
use rdma_fabric::{Rank, RegionKey, RemoteAddr};
use std::fmt;

/// The maximum number of ranks: each has a letter.
pub(crate) const MOST_RANKS: usize = 26;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Schedule {
    /// Memory that is touched by more than its owner's CPU.
    pub(crate) shared: Vec<Home>,
    /// Regions that may be addressed after they were dropped.
    pub(crate) contested: Vec<Holding>,
    pub(crate) moves: Vec<Move>,
}

fn upper(rank: u32) -> char {
    (b'A' + rank as u8) as char
}

fn lower(rank: u8) -> char {
    (b'a' + rank) as char
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, home) in self.shared.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            match home {
                Home::Memory(RemoteAddr { rank, region, offset }) => {
                    write!(f, "{comma}{}{}+{offset}", upper(rank.number()), region.index)?;
                }
                Home::Fact(number) => write!(f, "{comma}f{number}")?,
            }
        }
        for (i, holding) in self.contested.iter().enumerate() {
            let comma = if i + self.shared.len() > 0 { "," } else { "" };
            write!(f, "{comma}{}{}-", upper(holding.rank.number()), holding.index)?;
        }
        write!(f, ":")?;
        for which in &self.moves {
            match *which {
                Move::Go(rank) => write!(f, "{}", upper(rank.into()))?,
                Move::GoWith(rank, task) => write!(f, "{}{task}", upper(rank.into()))?,
                Move::Happen(rank, number) => write!(f, "{}{number}", lower(rank))?,
                Move::Begin(rank, number) => write!(f, "{}{number}'", lower(rank))?,
                Move::Write(rank, number) => write!(f, "{}{number}=", lower(rank))?,
                Move::Tick(rank) => write!(f, "{}!", lower(rank))?,
                Move::Die(rank) => write!(f, "{}~", lower(rank))?,
                Move::Learn(rank, lost) => write!(f, "{}?{}", lower(rank), lower(lost))?,
                Move::Vanish(rank) => write!(f, "{}-", lower(rank))?,
            }
        }
        Ok(())
    }
}

impl Schedule {
    /// Inverts [`Schedule::to_string`]; `None` if `text` is not a schedule.
    pub(crate) fn read(text: &str) -> Option<Schedule> {
        let (shared, moves) = text.split_once(':')?;
        let homes = || shared.split(',').filter(|home| !home.is_empty());
        let contested = homes().filter_map(|home| home.strip_suffix('-')).map(read_holding).collect::<Option<_>>()?;
        let shared = homes().filter(|home| !home.ends_with('-')).map(read_home).collect::<Option<_>>()?;
        Some(Schedule { shared, contested, moves: read_moves(moves)? })
    }
}

fn read_home(text: &str) -> Option<Home> {
    if let Some(fact) = text.strip_prefix('f') {
        return Some(Home::Fact(fact.parse().ok()?));
    }
    let rank = text.bytes().next().filter(u8::is_ascii_uppercase)? - b'A';
    let (region, offset) = text[1..].split_once('+')?;
    let region = RegionKey { index: region.parse().ok()?, generation: Cells::GENERATION };
    Some(Home::Memory(RemoteAddr { rank: Rank::new(rank.into()), region, offset: offset.parse().ok()? }))
}

fn read_holding(text: &str) -> Option<Holding> {
    let rank = text.bytes().next().filter(u8::is_ascii_uppercase)? - b'A';
    Some(Holding { rank: Rank::new(rank.into()), index: text[1..].parse().ok()? })
}

fn read_moves(text: &str) -> Option<Vec<Move>> {
    let mut rest = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).peekable();
    let mut moves = Vec::new();
    while let Some(letter) = rest.next() {
        let mut number = None::<u8>;
        while let Some(digit) = rest.next_if(u8::is_ascii_digit) {
            number = Some(number.unwrap_or(0).checked_mul(10)?.checked_add(digit - b'0')?);
        }
        moves.push(match (letter, number) {
            (b'A'..=b'Z', None) => Move::Go(letter - b'A'),
            (b'A'..=b'Z', Some(task)) => Move::GoWith(letter - b'A', task),
            (b'a'..=b'z', Some(number)) if rest.next_if_eq(&b'\'').is_some() => Move::Begin(letter - b'a', number),
            (b'a'..=b'z', Some(number)) if rest.next_if_eq(&b'=').is_some() => Move::Write(letter - b'a', number),
            (b'a'..=b'z', Some(number)) => Move::Happen(letter - b'a', number),
            (b'a'..=b'z', None) => match rest.next()? {
                b'!' => Move::Tick(letter - b'a'),
                b'~' => Move::Die(letter - b'a'),
                b'-' => Move::Vanish(letter - b'a'),
                b'?' => Move::Learn(letter - b'a', rest.next().filter(u8::is_ascii_lowercase)? - b'a'),
                _ => return None,
            },
            _ => return None,
        });
    }
    Some(moves)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_read_back_as_written() {
        let word = RemoteAddr {
            rank: Rank::new(1),
            region: RegionKey { index: 65536, generation: Cells::GENERATION },
            offset: 80,
        };
        let schedule = Schedule {
            shared: vec![Home::Memory(word), Home::Fact(2)],
            contested: vec![Holding { rank: Rank::new(2), index: 1 }],
            moves: vec![
                Move::Go(0),
                Move::GoWith(1, 12),
                Move::Happen(25, 3),
                Move::Tick(2),
                Move::Go(2),
                Move::Die(1),
                Move::Learn(0, 1),
                Move::Vanish(25),
                Move::Begin(1, 2),
                Move::Write(2, 10),
            ],
        };
        assert_eq!(schedule.to_string(), "B65536+80,f2,C1-:AB12z3c!Cb~a?bz-b2'c10=");
        assert_eq!(Schedule::read("B65536+80,f2,C1-:AB12 z3c!\nC b~a?b z- b2' c10="), Some(schedule));
        assert_eq!(
            Schedule::read(":"),
            Some(Schedule { shared: Vec::new(), contested: Vec::new(), moves: Vec::new() })
        );
        for wrong in ["", "A", ":a", ":A!", ":1", ":a999", ":é", ":a?", ":a?B", ":a0~", "a:", "A0:", "é0+0:", "A0+x:A"]
        {
            assert_eq!(Schedule::read(wrong), None, "{wrong}");
        }
    }
}
