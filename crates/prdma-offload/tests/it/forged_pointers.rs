//! Memory that is lent, next to a thread that overwrites all memory it can access.
//!
//! This is all memory with a key, of all ranks: the words of groups, where members publish tables,
//! staging memory. It writes garbage, keys of all existing regions, and copies of earlier contents.
//! Requests may fail, or never be made; but the contents of a view do not change, and nothing
//! panics.

use checks::jobs::threads;
use fastrand::Rng;
use prdma_offload::{Buffer, Edge, Form, Layout, Neighbourhood, Options, PrdmaError, Topology};
use rdma_fabric::{Fabric, FabricError, Group, ProgramResult, Rank, RegionKey, RemoteAddr, join};
use std::{
    collections::HashMap,
    env,
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

const RANKS: usize = 3;
const ROUNDS: u64 = 300;
const STEPS: u64 = 8;
/// The time after which a round is abandoned.
const PATIENCE: Duration = Duration::from_millis(25);
/// Elements of a block.
const BLOCK: usize = 40;

/// The thread that overwrites all memory it can access.
struct Forger {
    fabric: Fabric,
    random: Rng,
    /// The last known generation of each index that a rank may have used.
    generations: HashMap<(u32, u32), u32>,
    /// Accessible regions, each with its length in words.
    open: Vec<(RemoteAddr, u64)>,
    /// Keys of all regions, locked ones included.
    keys: Vec<u64>,
    /// Copies of earlier contents, with their addresses.
    copies: Vec<(RemoteAddr, Vec<u64>)>,
    locked: u64,
    written: u64,
}

impl Forger {
    fn new(fabric: Fabric, seed: u64) -> Self {
        // The first entries of the tables of symmetric and of local regions.
        let indices = (0..48).chain(1024..1072);
        let all = (0..fabric.ranks() as u32).flat_map(|rank| indices.clone().map(move |index| (rank, index)));
        let generations = all.map(|place| (place, 1)).collect();
        let (open, keys, copies) = (Vec::new(), Vec::new(), Vec::new());
        Forger { fabric, random: Rng::with_seed(seed), generations, open, keys, copies, locked: 0, written: 0 }
    }

    /// Searches for regions.
    fn look(&mut self) {
        self.open.clear();
        self.keys.clear();
        let mut places: Vec<_> = self.generations.iter_mut().collect();
        places.sort_unstable();
        for ((rank, index), generation) in places {
            loop {
                let region = RegionKey { index: *index, generation: *generation };
                let addr = RemoteAddr { rank: Rank::new(*rank), region, offset: 0 };
                match self.fabric.remote_span::<u64>(addr, 1 << 40).map(drop) {
                    Err(FabricError::StaleRegion { .. }) => {
                        *generation += 2;
                        continue;
                    }
                    Err(FabricError::OutOfBounds(outside)) => self.open.push((addr, outside.region_len / 8)),
                    Err(FabricError::Locked { .. }) => self.locked += 1,
                    _ => break,
                }
                self.keys.push(region.to_bits());
                break;
            }
        }
    }

    /// Returns some words of an accessible region.
    fn somewhere(&mut self) -> Option<(RemoteAddr, usize)> {
        let (addr, words) = *self.open.get(self.random.usize(..self.open.len().max(1)))?;
        let first = self.random.usize(..words as usize);
        let longest = (words as usize - first).min(64);
        Some((RemoteAddr { offset: first as u64 * 8, ..addr }, 1 + self.random.usize(..longest)))
    }

    fn put(&mut self, to: RemoteAddr, words: Vec<u64>) {
        if words.is_empty() {
            return;
        }
        let Ok(span) = self.fabric.remote_span::<u64>(to, words.len()) else { return };
        self.written += u64::from(matches!(join::now(self.fabric.put(&span, words)), Some(Ok(_))));
    }

    fn word(&mut self) -> u64 {
        match self.random.usize(..6) {
            0 => self.random.u64(..),
            1 => u64::MAX,
            2 => self.random.usize(..4) as u64,
            // About as large as the numbers of requests.
            3 => self.fabric.now().as_picos() / 1000 + self.random.usize(..1000) as u64,
            _ => self.keys.get(self.random.usize(..self.keys.len().max(1))).copied().unwrap_or(0),
        }
    }

    /// Executes one random action.
    fn step(&mut self) {
        match self.random.usize(..16) {
            0 => self.look(),
            1..6 => {
                let Some((addr, words)) = self.somewhere() else { return };
                let Ok(span) = self.fabric.remote_span::<u64>(addr, words) else { return };
                let got = join::now(self.fabric.get(&span, vec![0; words]));
                if let Some(Ok(copy)) = got {
                    let place = self.random.usize(..64);
                    self.copies.truncate(64);
                    self.copies.insert(place.min(self.copies.len()), (addr, copy));
                }
            }
            6..10 => {
                let Some((mut addr, mut words)) =
                    self.copies.get(self.random.usize(..self.copies.len().max(1))).cloned()
                else {
                    return;
                };
                if self.random.usize(..4) == 0
                    && let Some((elsewhere, most)) = self.somewhere()
                {
                    (addr, words) = (elsewhere, words.into_iter().take(most).collect());
                }
                self.put(addr, words);
            }
            _ => {
                let Some((addr, words)) = self.somewhere() else { return };
                let garbage = (0..words.min(3)).map(|_| self.word()).collect();
                self.put(addr, garbage);
            }
        }
    }
}

/// The outcomes of rounds.
#[derive(Debug, Default)]
struct Ends {
    well: AtomicU64,
    refused: AtomicU64,
    given_up: AtomicU64,
    steps: AtomicU64,
}

/// A barrier of the ranks and the forger. Dropping it before the last round breaks it.
struct Meeting(Arc<(AtomicU64, AtomicBool)>);

impl Meeting {
    fn wait(&self) {
        const ALL: u64 = RANKS as u64 + 1;
        let (arrived, broken) = &*self.0;
        let all = (arrived.fetch_add(1, SeqCst) / ALL + 1) * ALL;
        while arrived.load(SeqCst) < all {
            assert!(!broken.load(SeqCst), "another thread has failed");
            thread::sleep(Duration::from_micros(20));
        }
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        let rounds = self.0.0.load(SeqCst) / (RANKS as u64 + 1);
        self.0.1.store(rounds < 3 * ROUNDS, SeqCst);
    }
}

/// A ring in which all members send to the left and to the right.
async fn ring(fabric: &Fabric) -> prdma_offload::Result<Neighbourhood> {
    let group = Group::world(fabric).await?;
    let (me, n) = (group.me(), group.len());
    let edge = |member, label| Some(Edge { member: member % n, label });
    let (sources, destinations) = ([edge(me + n - 1, 1), edge(me + 1, 0)], [edge(me + n - 1, 0), edge(me + 1, 1)]);
    Neighbourhood::new(group, Topology::of(sources.into(), destinations.into())).await
}

/// Makes a request and executes steps, with views throughout.
async fn exchange(fabric: &Fabric, hood: &mut Neighbourhood, ends: &Ends) -> Result<(), PrdmaError> {
    let block = |number: usize| Layout::contiguous::<u64>(number * BLOCK, BLOCK).expect("a block");
    let field = Buffer::<u64>::in_place(fabric, 5 * BLOCK)?;
    let bystander = Buffer::<u64>::in_place(fabric, BLOCK)?;
    let (seen, untouched) = (bystander.view(0..BLOCK)?, field.view(4 * BLOCK..5 * BLOCK)?);
    let options = Options::form(Form::Cpu);
    let (sends, receives) = ([block(0), block(1)], [block(2), block(3)]);
    let mut request = hood.alltoallw_init(&field, &sends, &field, &receives, &options).await?;
    for step in 0..STEPS {
        field.view_mut(0..2 * BLOCK)?.fill(1000 * fabric.rank().number() as u64 + step);
        request.start().await?;
        request.wait().await?;
        let received = field.view(2 * BLOCK..4 * BLOCK)?;
        let before = received.to_vec();
        fabric.sleep(Duration::from_micros(50)).await;
        assert_eq!(black_box(&*received), before, "a view has changed");
        drop(received);
        for (nth, from) in [RANKS - 1, 1].into_iter().enumerate() {
            let from = (fabric.rank().index() + from) % RANKS;
            assert_eq!(before[nth * BLOCK..][..BLOCK], [1000 * from as u64 + step; BLOCK], "what neighbours sent");
        }
        ends.steps.fetch_add(1, SeqCst);
    }
    assert!(black_box(&*seen).iter().chain(black_box(&*untouched)).all(|element| *element == 0));
    Ok(())
}

#[test]
fn forged_memory_does_not_change_views() {
    let clock = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_micros() as u64;
    let seed = env::var("FORGED_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(clock);
    println!("FORGED_SEED={seed}");
    let (ends, meeting, over) = (Ends::default(), Arc::default(), Arc::new(AtomicU64::new(0)));
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        let meet = Meeting(Arc::clone(&meeting));
        let forger = (fabric.rank().index() == 0).then(|| {
            let (mut forger, over) = (Forger::new(fabric.clone(), seed), over.clone());
            let meet = Meeting(Arc::clone(&meeting));
            thread::spawn(move || {
                for round in 0..ROUNDS {
                    meet.wait();
                    forger.look();
                    // In every fifth round it only searches, so that some rounds end successfully.
                    let hurries = forger.random.usize(..3) > 0;
                    while over.load(SeqCst) < (round + 1) * RANKS as u64 && round % 5 != 0 {
                        (0..1 + forger.random.usize(..8)).for_each(|_| forger.step());
                        if hurries { thread::yield_now() } else { thread::sleep(Duration::from_micros(20)) }
                    }
                    meet.wait();
                    meet.wait();
                }
                (forger.locked, forger.written)
            })
        });
        for _ in 0..ROUNDS {
            let mut hood = ring(&fabric).await?;
            hood.group_mut().barrier().await?;
            meet.wait();
            let ended = fabric.before(fabric.now() + PATIENCE, exchange(&fabric, &mut hood, &ends)).await;
            let count = match ended {
                Some(Ok(())) => &ends.well,
                Some(Err(_)) => &ends.refused,
                None => &ends.given_up,
            };
            count.fetch_add(1, SeqCst);
            over.fetch_add(1, SeqCst);
            meet.wait();
            drop(hood);
            meet.wait();
        }
        if let Some(forger) = forger {
            let (locked, written) = forger.join().expect("it does not panic");
            println!("{locked} locked regions were met, {written} puts changed something");
            assert!(locked > 0 && written > 0);
        }
        Ok(())
    };
    threads(RANKS).run(&program).unwrap();
    println!("{ends:?}");
    assert!(ends.well.into_inner() > 0 && ends.refused.into_inner() > 0 && ends.steps.into_inner() > 0);
}
