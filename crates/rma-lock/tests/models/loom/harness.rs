//! Tests of the harness itself on a plain MCS mutex over the fabric: the correct mutex passes,
//! every broken one is reported.

use loom_fabric::{Access, Config, DataCell, Delivery, RankHandle, check, check_fails, run};
use rdma_fabric::{Deps, Fabric, FabricError, LocalWord, PutOrder, Rank, Region, RemoteAddr, RemoteWord, Result, Time};
use std::rc::Rc;

/// The mutant of a [`Mcs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum McsMutant {
    Nothing,
    /// Passes the lock on without a flush of the protected data.
    NoFlush,
    /// Passes the lock on by an atomic without that flush, which is correct if puts are ordered
    /// before atomics.
    NoFlushButSwap,
    /// Marks itself as blocked only after it can be woken.
    LateInit,
    /// Assumes that the tail was still its own.
    IgnoredCas,
}

/// The words of a rank's part: the tail (only rank 0's is used), `blocked`, `next`.
const TAIL: usize = 0;
const BLOCKED: usize = 8;
const NEXT: usize = 16;

struct Mcs {
    fabric: Fabric,
    region: Region,
    tail: RemoteWord<u64>,
    blocked: LocalWord<u64>,
    next: LocalWord<u64>,
    mutant: McsMutant,
}

impl Mcs {
    async fn new(fabric: &Fabric, mutant: McsMutant) -> Result<Self> {
        let region = fabric.alloc_symmetric(24).await?;
        let home = RemoteAddr { rank: Rank::new(0), region: region.key(), offset: TAIL as u64 };
        Ok(Mcs {
            tail: fabric.remote_word(home)?,
            blocked: region.word(fabric, BLOCKED)?,
            next: region.word(fabric, NEXT)?,
            region,
            fabric: fabric.clone(),
            mutant,
        })
    }

    fn word(&self, id: u64, offset: usize) -> Result<RemoteWord<u64>> {
        let rank = Rank::new(id as u32 - 1);
        self.fabric.remote_word(RemoteAddr { rank, region: self.region.key(), offset: offset as u64 })
    }

    fn id(&self) -> u64 {
        u64::from(self.fabric.rank().number()) + 1
    }

    async fn lock(&self) -> Result<()> {
        self.fabric.store(&self.next, 0)?;
        if self.mutant != McsMutant::LateInit {
            self.fabric.store(&self.blocked, 1)?;
        }
        let pred = self.fabric.swap(&self.tail, self.id()).await?;
        if pred != 0 {
            self.fabric.put_word(&self.word(pred, NEXT)?, self.id()).await?;
            if self.mutant == McsMutant::LateInit {
                self.fabric.store(&self.blocked, 1)?;
            }
            self.fabric.wait_until(&self.blocked, Deps::All, |blocked| blocked == 0).await?;
        }
        Ok(())
    }

    async fn unlock(&self) -> Result<()> {
        if !matches!(self.mutant, McsMutant::NoFlush | McsMutant::NoFlushButSwap) {
            self.fabric.flush_all().await?;
        }
        if self.fabric.load(&self.next)? == 0 {
            let old = self.fabric.compare_swap(&self.tail, self.id(), 0).await?;
            if old == self.id() || self.mutant == McsMutant::IgnoredCas {
                return Ok(());
            }
        }
        let next = self.fabric.wait_until(&self.next, Deps::All, |next| next != 0).await?;
        let blocked = self.word(next, BLOCKED)?;
        if self.mutant == McsMutant::NoFlushButSwap {
            return self.fabric.swap(&blocked, 0).await.map(drop);
        }
        self.fabric.put_word(&blocked, 0).await
    }
}

async fn one_round(fabric: Fabric, data: Rc<DataCell>, mutant: McsMutant) -> Result<Mcs> {
    let lock = Mcs::new(&fabric, mutant).await?;
    lock.lock().await?;
    data.enter_write(&fabric);
    data.leave_write();
    lock.unlock().await?;
    Ok(lock)
}

fn model(config: Config, mutant: McsMutant) -> impl Fn() + Send + Sync + 'static {
    move || {
        let data = Rc::new(DataCell::new());
        run(config, move |fabric| {
            let data = data.clone();
            async move { one_round(fabric, data, mutant).await.expect("no error is possible") }
        });
    }
}

#[test]
fn two_ranks_exclude_each_other() {
    check(None, 99, model(Config::new(2, Delivery::AtPost), McsMutant::Nothing));
    check(None, 37, model(Config::new(2, Delivery::AtFlush), McsMutant::Nothing));
    // Four threads.
    check(Some(3), 2_692, model(Config::new(2, Delivery::Nic), McsMutant::Nothing));
}

#[test]
fn three_ranks_exclude_each_other() {
    check(Some(3), 2_556, model(Config::new(3, Delivery::AtPost), McsMutant::Nothing));
    check(Some(3), 1_833, model(Config::new(3, Delivery::AtFlush), McsMutant::Nothing));
}

const RACE: &[&str] = &["Causality violation"];

#[test]
fn a_hand_over_without_flush_is_a_race() {
    check_fails(None, RACE, model(Config::new(2, Delivery::AtPost), McsMutant::NoFlush));
    check_fails(None, RACE, model(Config::new(2, Delivery::AtPost), McsMutant::NoFlushButSwap));
}

/// Puts are ordered before atomics only, not among themselves.
#[test]
fn no_flush_is_needed_where_puts_are_ordered() {
    let mut config = Config::new(2, Delivery::AtPost);
    config.caps.put_order = PutOrder::AllTargets;
    check(None, 99, model(config, McsMutant::NoFlushButSwap));
    check_fails(None, RACE, model(config, McsMutant::NoFlush));
}

#[test]
fn a_relaxed_wait_is_a_race() {
    let config = Config { relaxed: |access| matches!(access, Access::Wait(_)), ..Config::new(2, Delivery::AtPost) };
    check_fails(None, RACE, model(config, McsMutant::Nothing));
}

#[test]
fn a_late_initialisation_loses_the_wake_up() {
    check_fails(None, &["deadlock"], model(Config::new(2, Delivery::AtPost), McsMutant::LateInit));
}

#[test]
fn an_ignored_comparison_leaves_the_successor_asleep() {
    check_fails(None, &["deadlock"], model(Config::new(2, Delivery::AtPost), McsMutant::IgnoredCas));
}

/// Puts a value, then sets a flag by another operation; the receiver reads the value after the
/// flag.
fn message(delivery: Delivery, flush: bool) -> impl Fn() + Send + Sync + 'static {
    move || {
        run(Config::new(2, delivery), move |fabric| async move {
            let exchange = async {
                let region = fabric.alloc_symmetric(16).await?;
                let key = region.key();
                let far = |offset| RemoteAddr { rank: Rank::new(1), region: key, offset };
                if fabric.rank() == Rank::new(0) {
                    fabric.put_word(&fabric.remote_word::<u64>(far(0))?, 7).await?;
                    if flush {
                        fabric.flush(Rank::new(1)).await?;
                    }
                    fabric.swap(&fabric.remote_word::<u64>(far(8))?, 1).await?;
                } else {
                    let flag = region.word::<u64>(&fabric, 8)?;
                    fabric.wait_until(&flag, Deps::All, |flag| flag == 1).await?;
                    let value = fabric.load(&region.word::<u64>(&fabric, 0)?)?;
                    assert_eq!(value, 7, "the atomic overtook the put");
                }
                Ok::<_, FabricError>(region)
            };
            exchange.await.expect("no error is possible")
        });
    }
}

#[test]
fn an_atomic_overtakes_a_put_that_was_not_flushed() {
    for delivery in [Delivery::AtFlush, Delivery::Nic] {
        check(None, 3, message(delivery, true));
        check_fails(None, &["the atomic overtook the put"], message(delivery, false));
    }
}

#[test]
fn a_clock_moved_by_another_rank_ends_a_wait_at_any_time() {
    check(None, 22, || {
        run(Config::new(2, Delivery::AtPost), |fabric| async move {
            let at = Time::from_picos(5);
            let raced = async {
                let region = fabric.alloc_symmetric(8).await?;
                if fabric.rank() == Rank::new(0) {
                    let word = region.word::<u64>(&fabric, 0)?;
                    let wait = fabric.wait_until(&word, Deps::All, |v| v == 1);
                    match fabric.before(at, wait).await {
                        Some(value) => assert_eq!(value?, 1),
                        None => assert_eq!(fabric.now(), at),
                    }
                } else {
                    RankHandle::of(&fabric).job().advance(Rank::new(0), 5);
                    let addr = RemoteAddr { rank: Rank::new(0), region: region.key(), offset: 0 };
                    fabric.put_word(&fabric.remote_word::<u64>(addr)?, 1).await?;
                }
                Ok::<_, FabricError>(region)
            };
            raced.await.expect("no error is possible")
        });
    });
}

#[test]
fn copies_are_gets_and_puts_and_no_third_party_does_any() {
    let mut config = Config::new(2, Delivery::AtFlush);
    (config.caps.third_party_copy, config.caps.puts_in_order) = (true, true);
    check(None, 1, move || {
        run(config, |fabric| async move {
            assert!(!fabric.caps().third_party_copy && !fabric.caps().puts_in_order);
            let copied = async {
                let (region, far) = (fabric.alloc_symmetric(48).await?, Rank::new(1));
                if fabric.rank() == far {
                    let flag = region.word::<u64>(&fabric, 40)?;
                    return fabric.wait_until(&flag, Deps::All, |flag| flag == 3).await.map(drop);
                }
                let part = |rank, at, len| fabric.remote_span::<u64>(region.at(rank, at), len);
                fabric.write(&region.span(&fabric, 0, 3)?, &[1u64, 2, 3])?;
                // To higher offsets, into cells that have not been read yet.
                fabric.copy(&part(fabric.rank(), 8, 3)?, &part(fabric.rank(), 0, 3)?).await?;
                let refused = fabric.copy(&part(far, 0, 1)?, &part(far, 8, 1)?).await;
                assert!(matches!(refused, Err(FabricError::Unsupported { .. })), "{refused:?}");
                fabric.copy(&part(far, 40, 1)?, &part(fabric.rank(), 24, 1)?).await?;
                fabric.flush(far).await
            };
            copied.await.expect("no call fails");
        });
    });
}
