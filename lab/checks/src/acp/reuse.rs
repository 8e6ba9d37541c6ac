//! A tag that is reused by one region after another, while another rank uses an old address.

use super::{Member, SEEN};
use ::acp::{AcpError, GlobalAddress};
use rdma_fabric::{Deps, ProgramResult, Rank};

/// Words of the first region; later ones have one.
const WORDS: usize = 2;
/// The word of the owner's starter memory that holds the address.
const TOLD: u64 = 1;

impl Member {
    fn told(&self, bits: u64) -> GlobalAddress {
        GlobalAddress::from_bits(bits).expect("an address")
    }

    /// Registers the first region of rank 1, and lets rank 0 resolve it.
    pub(super) async fn prepare_reuse(&self) -> ProgramResult<()> {
        if self.me == 1 {
            let key = self.acp.allocate(8 * WORDS, 0)?;
            let address = self.acp.address(key, 0)?;
            self.acp.write(address, &[content(0); WORDS]).await?;
            self.acp.store(self.at(1, TOLD)?, address.to_bits()).await?;
        }
        self.acp.sync().await?;
        if self.me == 0 {
            let address = self.told(self.load(1, TOLD).await?);
            self.acp.store(self.at(0, TOLD)?, address.to_bits()).await?;
            assert_eq!(self.acp.load::<u64>(address).await?, content(0));
        }
        Ok(())
    }

    pub(super) async fn reuse(&self, times: u64) -> ProgramResult<()> {
        let address = self.told(self.load(self.me, TOLD).await?);
        if self.me == 1 {
            let mut key = self.acp.query(address).expect("a region").0;
            for time in 1..=times {
                self.acp.unregister(key)?;
                key = self.acp.allocate(8, 0)?;
                assert_eq!(self.acp.address(key, 0)?, address, "there is one tag");
                self.acp.store(address, content(time)).await?;
            }
            let over = self.fabric.remote_word::<u64>(self.over.at(Rank::new(0), 0))?;
            return Ok(self.fabric.put_word(&over, 1).await?);
        }
        // Words that only the first region has, or that each has.
        let words = if times == 1 { WORDS } else { 1 };
        let mut seen = vec![0; words];
        match self.acp.read(address, &mut seen).await {
            Ok(()) if words == WORDS => assert_eq!(seen, [content(0); WORDS], "what is read of the old region"),
            // Zero, if a region has just been allocated.
            Ok(()) => assert!(seen[0] == 0 || (content(0)..=content(times)).contains(&seen[0]), "{seen:?} is read"),
            Err(AcpError::NoSuchRegion { address: gone }) if gone == address => {
                self.probe.add(SEEN, 1);
            }
            Err(AcpError::OutOfBounds(outside)) if outside.region_bytes == 8 && outside.address == address => {
                self.probe.add(SEEN, 1);
            }
            Err(error) => return Err(error.into()),
        }
        let over = self.over.word::<u64>(&self.fabric, 0)?;
        self.fabric.wait_until(&over, Deps::One(Rank::new(1)), |over| over != 0).await?;
        assert_eq!(self.acp.load::<u64>(address).await?, content(times), "the old region was read");
        Ok(())
    }
}

/// Returns the content of the region after `time` others.
const fn content(time: u64) -> u64 {
    7 + time
}
