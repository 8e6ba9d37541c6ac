//! What a protocol holds of its puts.

use super::{TriggeredPut, set::Set};
use crate::{Fabric, Rank, Result};
use core::{
    fmt,
    ops::{Deref, DerefMut},
};

/// Puts that are armed together, again and again, each time with a greater number.
///
/// What can't be carried out at once goes on in whatever call of this rank waits next: see the [module](super). Dropping it gives up what is not
/// carried out; what was posted is still carried out by the network.
pub struct TriggeredPuts {
    fabric: Fabric,
    /// `None` while it is lent.
    here: Option<Box<Set>>,
    /// Where it is on the rank's board; only while it is not here.
    loan: Option<u64>,
}

impl fmt::Debug for TriggeredPuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.loan.is_some() { "TriggeredPuts(armed)" } else { "TriggeredPuts" })
    }
}

impl TriggeredPuts {
    /// Waits for their words depend on `ranks`, which include all that they go to.
    pub fn new(fabric: &Fabric, puts: Vec<TriggeredPut>, ranks: &[Rank]) -> Self {
        TriggeredPuts { fabric: fabric.clone(), here: Some(Box::new(Set::new(fabric, puts, ranks.into()))), loan: None }
    }

    /// Arm all of them with `number`, and carry out those whose words have come to it. Waits for nobody but the network, and only where posting
    /// takes time.
    ///
    /// Those that were armed before are to be [done](TriggeredPuts::wait). A call that is dropped has armed them.
    ///
    /// # Errors
    /// As [`Fabric::put`] and [`Fabric::load`]: nothing is carried out any more.
    pub async fn arm(&mut self, number: u64) -> Result<()> {
        let mut hand = self.hand().await;
        hand.arm(number);
        hand.advance().await.map(drop)
    }

    /// Arm all of them with `number`, and leave them to [`Triggers::advance`](super::Triggers::advance) and whoever waits next. They are here, which
    /// means that those that were armed before are [done](TriggeredPuts::wait).
    ///
    /// # Panics
    /// If they are not.
    pub fn leave(&mut self, number: u64) {
        assert!(self.loan.is_none(), "armed again before they were done");
        Hand(self).arm(number);
    }

    /// Wait until all are carried out: what was put may be written again. May be dropped and called again.
    ///
    /// # Errors
    /// As [`TriggeredPuts::arm`]; as [`Fabric::wait_until`], if a rank is lost.
    pub async fn wait(&mut self) -> Result<()> {
        let mut hand = self.hand().await;
        while !hand.advance().await? {
            let fabric = hand.fabric.clone();
            if let Err(error) = fabric.triggers().beside(hand.parked()?.wait()).await {
                hand.fail(error.clone());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether all are carried out; carries out what can be.
    ///
    /// # Errors
    /// As [`TriggeredPuts::arm`].
    pub async fn test(&mut self) -> Result<bool> {
        self.hand().await.advance().await
    }

    pub(super) async fn hand(&mut self) -> Hand<'_> {
        if let Some(loan) = self.loan {
            self.here = Some(self.fabric.triggers().board().reclaim(loan).await);
            self.loan = None;
        }
        Hand(self)
    }
}

impl Drop for TriggeredPuts {
    fn drop(&mut self) {
        if let Some(loan) = self.loan {
            self.fabric.triggers().board().withdraw(loan);
        }
    }
}

/// The set in its owner's hand; if something is left to do when it is dropped, it is lent.
pub(super) struct Hand<'a>(&'a mut TriggeredPuts);

impl Deref for Hand<'_> {
    type Target = Set;

    fn deref(&self) -> &Set {
        self.0.here.as_ref().expect("in hand")
    }
}

impl DerefMut for Hand<'_> {
    fn deref_mut(&mut self) -> &mut Set {
        self.0.here.as_mut().expect("in hand")
    }
}

impl Drop for Hand<'_> {
    fn drop(&mut self) {
        if let Some(set) = self.0.here.take_if(|set| set.is_left()) {
            self.0.loan = Some(self.0.fabric.triggers().board().lend(set));
        }
    }
}
