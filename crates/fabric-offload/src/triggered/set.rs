//! Puts that are armed together: the protocol's handle to them, and the part that moves to the call
//! that executes them.

use super::{TriggeredPut, Triggers};
use core::{fmt, hint::spin_loop};
use rdma_fabric::{Deps, Fabric, FabricError, LocalWord, Rank, Result, join, op::Nop};
use std::sync::Arc;

/// Puts that are armed together, repeatedly, each time with a greater number.
///
/// Puts that are not possible immediately are executed in the next call of this rank that waits
/// ([`Triggers::run_during`](super::Triggers::run_during)). Dropping the value abandons puts that
/// have not been executed; the network still completes the posted ones.
pub struct TriggeredPuts {
    fabric: Fabric,
    /// The set; `None` while it is lent.
    here: Option<Box<Set>>,
    /// The loan's number on the rank's board; `Some` only while the set is lent.
    loan: Option<u64>,
}

impl fmt::Debug for TriggeredPuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.loan.is_some() { "TriggeredPuts(armed)" } else { "TriggeredPuts" })
    }
}

impl TriggeredPuts {
    /// Groups `puts`. Waits for their words depend on `ranks`, which include all ranks that they go
    /// to.
    pub fn new(fabric: &Fabric, puts: Vec<TriggeredPut>, ranks: &[Rank]) -> Self {
        TriggeredPuts { fabric: fabric.clone(), here: Some(Box::new(Set::new(fabric, puts, ranks.into()))), loan: None }
    }

    /// Arms all puts with `number`, and executes those whose words have reached it. Waits only for
    /// the network, and only where posting takes time.
    ///
    /// Puts that were armed before must be [done](TriggeredPuts::wait). A call that is dropped has
    /// still armed them.
    ///
    /// # Errors
    /// As [`Fabric::put`] and [`Fabric::load`]: nothing more is executed.
    pub async fn arm(&mut self, number: u64) -> Result<()> {
        let mut hand = self.hand().await;
        hand.set().number = number;
        match hand.set().advance_now() {
            Left::None | Left::Late => Ok(()),
            Left::Slow => hand.set().advance().await.map(drop),
        }
    }

    /// Arms all puts with `number`, and leaves them to
    /// [`Triggers::advance`](super::Triggers::advance) and the next call that waits.
    ///
    /// # Panics
    /// If puts that were armed before are not [done](TriggeredPuts::wait).
    pub fn leave(&mut self, number: u64) {
        assert!(self.loan.is_none(), "armed again before they were done");
        Hand(self).set().number = number;
    }

    /// Waits until all puts are executed: their sources may be written again. May be dropped and
    /// called again.
    ///
    /// # Errors
    /// As [`TriggeredPuts::arm`]; as [`Fabric::wait_until`] if a rank is lost.
    pub async fn wait(&mut self) -> Result<()> {
        let mut hand = self.hand().await;
        if hand.set().advance_soon() == Left::None {
            return Ok(());
        }
        while !hand.set().advance().await? {
            let Hand(TriggeredPuts { fabric, here: Some(set), .. }) = &mut hand else { continue };
            if let Err(error) = Triggers::of(fabric).run_during(set.until_possible()).await {
                set.fail(error.clone());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Carries out the puts that are possible now, and returns whether all puts have been carried
    /// out.
    ///
    /// # Errors
    /// As [`TriggeredPuts::arm`].
    pub async fn test(&mut self) -> Result<bool> {
        self.hand().await.set().advance().await
    }

    pub(super) async fn hand(&mut self) -> Hand<'_> {
        if let Some(loan) = self.loan {
            self.here = Some(Triggers::of(&self.fabric).board.reclaim(loan).await);
            self.loan = None;
        }
        Hand(self)
    }
}

impl Drop for TriggeredPuts {
    fn drop(&mut self) {
        if let Some(loan) = self.loan {
            Triggers::of(&self.fabric).board.withdraw(loan);
        }
    }
}

/// The set held by its owner; if something is left to do when this is dropped, the set is lent.
pub(super) struct Hand<'a>(&'a mut TriggeredPuts);

impl Hand<'_> {
    pub(super) fn set(&mut self) -> &mut Set {
        self.0.here.as_mut().expect("in hand")
    }
}

impl Drop for Hand<'_> {
    fn drop(&mut self) {
        if let Some(set) = self.0.here.take_if(|set| set.is_left()) {
            self.0.loan = Some(Triggers::of(&self.0.fabric).board.lend(set));
        }
    }
}

/// The puts of one owner, with everything needed to execute them; it moves to the call that does
/// so.
pub(super) struct Set {
    fabric: Fabric,
    puts: Vec<TriggeredPut>,
    /// Whether [`Set::go_now`] posts puts, or leaves them to [`Set::go`]: posting takes no time.
    immediate: bool,
    /// The number that the puts are armed with.
    number: u64,
    /// The ranks whose loss ends the waits.
    ranks: Arc<[Rank]>,
    /// The error of the set; after an error no more puts are executed.
    error: Option<FabricError>,
}

/// The state of a set's puts that are still to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Left {
    /// Some puts have to wait for the network, or the set has failed: [`Set::advance`] waits for
    /// the former, and reports the latter.
    Slow,
    /// Some puts wait for their words.
    Late,
    None,
}

impl Set {
    pub(super) fn new(fabric: &Fabric, mut puts: Vec<TriggeredPut>, ranks: Arc<[Rank]>) -> Self {
        puts.iter_mut().for_each(|put| put.over(&fabric.caps()));
        // Not `Caps::immediate`: over a network, posts need no wait, either, although the operations
        // complete later.
        let immediate = fabric.try_post(Nop).is_ok_and(|mut nop| nop.test());
        Set { fabric: fabric.clone(), puts, immediate, number: 0, ranks, error: None }
    }

    /// Returns whether something is left to do.
    pub(super) fn is_left(&self) -> bool {
        self.error.is_none() && self.puts.iter().any(|put| !put.is_done(self.number))
    }

    pub(super) fn fail(&mut self, error: FabricError) {
        self.error.get_or_insert(error);
    }

    #[inline]
    fn go_now(&mut self) -> Result<Left, Box<FabricError>> {
        let mut left = Left::None;
        for put in self.puts.iter_mut().filter(|put| !put.is_done(self.number)) {
            if put.late(&self.fabric, self.number)?.is_some() {
                left = left.min(Left::Late);
            } else if !self.immediate || put.go_now(&self.fabric, self.number)?.is_pending() {
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

    /// Carries out the puts that need no wait. An error persists.
    fn advance_now(&mut self) -> Left {
        if self.error.is_some() {
            return Left::Slow;
        }
        self.go_now().unwrap_or_else(|error| {
            self.fail(error.into());
            Left::Slow
        })
    }

    /// Carries out the puts that need no wait, and, where peers can be that fast, polls again for a
    /// moment. An error persists.
    fn advance_soon(&mut self) -> Left {
        let mut looks = self.puts.iter().map(TriggeredPut::looks).min().unwrap_or(0);
        loop {
            let left = self.advance_now();
            if left != Left::Late || looks == 0 {
                return left;
            }
            looks -= 1;
            spin_loop();
        }
    }

    /// Waits until one of the puts can proceed.
    async fn until_possible(&self) -> Result<()> {
        until_one(&self.fabric, &self.late()?, self.number, &self.ranks).await
    }

    /// Carries out the puts that need not wait for words; returns whether all have been carried
    /// out. An error persists.
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

    /// Returns a wait that ends when one of the puts can proceed.
    pub(super) fn parked(&self) -> Result<Parked> {
        let words = self.late()?.into_iter().cloned().collect();
        Ok(Parked { fabric: self.fabric.clone(), words, number: self.number, ranks: self.ranks.clone() })
    }

    /// Returns one word of each put that is late; none if some put is not late.
    fn late(&self) -> Result<Vec<&LocalWord<u64>>> {
        let mut words = Vec::new();
        for put in self.puts.iter().filter(|put| !put.is_done(self.number)) {
            match put.late(&self.fabric, self.number)? {
                Some(word) => words.push(word),
                // Its words have arrived since the last check, and peers may be waiting for it.
                None => return Ok(Vec::new()),
            }
        }
        Ok(words)
    }
}

/// A set's wait, detached from the set.
pub(super) struct Parked {
    fabric: Fabric,
    /// One word of each put that is late; empty if some put is not late.
    words: Vec<LocalWord<u64>>,
    number: u64,
    ranks: Arc<[Rank]>,
}

impl Parked {
    /// Waits until one of the words has reached the number.
    pub(super) async fn wait(self) -> Result<()> {
        let words: Vec<_> = self.words.iter().collect();
        until_one(&self.fabric, &words, self.number, &self.ranks).await
    }
}

/// Waits until one of the words, if there are any, has reached `number`.
async fn until_one(fabric: &Fabric, words: &[&LocalWord<u64>], number: u64, ranks: &[Rank]) -> Result<()> {
    let one = |word| fabric.wait_until(word, Deps::Ranks(ranks), move |value: u64| value >= number);
    match *words {
        [] => Ok(()),
        [word] => one(word).await.map(drop),
        _ => join::race_all(words.iter().copied().map(one)).await.map(drop),
    }
}
