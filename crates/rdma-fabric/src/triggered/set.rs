//! Puts that are armed together.

use super::TriggeredPut;
use crate::{Deps, Fabric, FabricError, LocalWord, Rank, Result, join};
use std::sync::Arc;

/// The puts of one owner, with all that is needed to carry them out; it goes to whoever does so.
pub(super) struct Set {
    pub(super) fabric: Fabric,
    puts: Vec<TriggeredPut>,
    /// Whether the provider finishes operations while they are posted.
    immediate: bool,
    /// What the puts are armed with.
    number: u64,
    /// Whose loss ends the waits.
    pub(super) ranks: Arc<[Rank]>,
    /// What it failed with; nothing is done any more then.
    error: Option<FabricError>,
}

/// How far the puts of a set are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Left {
    /// Some take waiting for the network.
    Slow,
    /// Some wait for their words.
    Late,
    None,
}

impl Set {
    pub(super) fn new(fabric: &Fabric, puts: Vec<TriggeredPut>, ranks: Arc<[Rank]>) -> Self {
        let immediate = fabric.try_nop().is_ok_and(|mut nop| nop.test());
        Set { fabric: fabric.clone(), puts, immediate, number: 0, ranks, error: None }
    }

    pub(super) fn arm(&mut self, number: u64) {
        self.number = number;
    }

    /// Whether something is left to do.
    pub(super) fn is_left(&self) -> bool {
        self.error.is_none() && self.puts.iter().any(|put| !put.is_done(self.number))
    }

    pub(super) fn fail(&mut self, error: FabricError) {
        self.error.get_or_insert(error);
    }

    fn go_now(&mut self) -> Result<Left> {
        let mut left = Left::None;
        for put in self.puts.iter_mut().filter(|put| !put.is_done(self.number)) {
            if put.late(&self.fabric, self.number)?.is_some() {
                left = left.min(Left::Late);
            } else if !(self.immediate && put.go_now(&self.fabric, self.number)?) {
                left = Left::Slow;
            }
        }
        Ok(left)
    }

    async fn go(&mut self) -> Result<bool> {
        loop {
            match self.go_now()? {
                Left::None => return Ok(true),
                Left::Late => return Ok(false),
                Left::Slow => {}
            }
            let (fabric, number, mut going) = (&self.fabric, self.number, Vec::new());
            for put in self.puts.iter_mut().filter(|put| !put.is_done(number)) {
                if put.late(fabric, number)?.is_none() {
                    going.push(put.go(fabric, number));
                }
            }
            join::join_all(going).await.into_iter().collect::<Result<()>>()?;
        }
    }

    /// Carry out what waits for nobody; whether all is done. An error stays.
    pub(super) async fn advance(&mut self) -> Result<bool> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let gone = self.go().await;
        if let Err(error) = &gone {
            self.error = Some(error.clone());
        }
        gone
    }

    /// A wait that ends when one of the puts may go on.
    pub(super) fn parked(&self) -> Result<Parked> {
        let mut words = Vec::new();
        for put in self.puts.iter().filter(|put| !put.is_done(self.number)) {
            match put.late(&self.fabric, self.number)? {
                Some(word) => words.push(word.clone()),
                // Its words have come since it was looked at, and others may wait for this put.
                None => {
                    words.clear();
                    break;
                }
            }
        }
        Ok(Parked { fabric: self.fabric.clone(), words, number: self.number, ranks: self.ranks.clone() })
    }
}

/// What a set waits for, apart from it.
pub(super) struct Parked {
    fabric: Fabric,
    /// One of each put that is late; none if one of them isn't.
    words: Vec<LocalWord<u64>>,
    number: u64,
    ranks: Arc<[Rank]>,
}

impl Parked {
    /// Until one of the words has come to the number.
    pub(super) async fn wait(self) -> Result<()> {
        let one = |word| self.fabric.wait_until(word, Deps::Ranks(&self.ranks), |value: u64| value >= self.number);
        match &self.words[..] {
            [] => Ok(()),
            [word] => one(word).await.map(drop),
            words => join::race_all(words.iter().map(one)).await.map(drop),
        }
    }
}
