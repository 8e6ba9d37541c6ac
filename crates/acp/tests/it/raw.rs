//! The calls of the C interface in terms of integers, as a binding would wrap them.

use crate::harness::everywhere;
use acp::{Acp, GlobalAddress, Key, Order};
use rdma_fabric::{Amo, Fabric, ProgramResult, Rank};

const NULL: i64 = 0;
const ALL: i64 = -1;
const CONTINUE: i64 = -2;

struct Raw(Acp);

impl Raw {
    fn starter(&self, rank: u32) -> u64 {
        self.0.starter(Rank::new(rank)).map_or(0, GlobalAddress::to_bits)
    }

    fn register(&self, bytes: usize, colour: usize) -> u64 {
        self.0.allocate(bytes, colour).map_or(0, Key::to_bits)
    }

    fn address(&self, key: u64, offset: usize) -> u64 {
        let address = Key::from_bits(key).and_then(|key| self.0.address(key, offset).ok());
        address.map_or(0, GlobalAddress::to_bits)
    }

    fn unregister(&self, key: u64) -> i32 {
        match Key::from_bits(key).map(|key| self.0.unregister(key)) {
            Some(Ok(())) => 0,
            _ => -1,
        }
    }

    fn rank_of(&self, address: u64) -> i32 {
        GlobalAddress::from_bits(address).map_or(-1, |address| address.rank().number() as i32)
    }

    fn colour_of(&self, address: u64) -> i32 {
        GlobalAddress::from_bits(address).map_or(-1, |address| address.colour() as i32)
    }

    async fn copy(&self, to: u64, from: u64, bytes: usize, order: i64) -> i64 {
        let (Some(to), Some(from)) = (GlobalAddress::from_bits(to), GlobalAddress::from_bits(from)) else {
            return NULL;
        };
        self.0.copy(to, from, bytes, Order::from_raw(order)).await.map_or(NULL, |handle| handle.number())
    }

    async fn add4(&self, to: u64, word: u64, value: u32, order: i64) -> i64 {
        let (Some(to), Some(word)) = (GlobalAddress::from_bits(to), GlobalAddress::from_bits(word)) else {
            return NULL;
        };
        self.0.atomic(to, word, Amo::Add(value), Order::from_raw(order)).await.map_or(NULL, |handle| handle.number())
    }

    async fn complete(&self, handle: i64) {
        self.0.complete(Order::from_raw(handle)).await.expect("nothing fails here");
    }

    fn inquire(&self, handle: i64) -> i32 {
        i32::from(!self.0.is_complete(Order::from_raw(handle)).expect("nothing fails here"))
    }
}

#[test]
fn everything_can_be_said_in_whole_numbers() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let raw = Raw(Acp::init(&fabric).await?);
        let me = raw.0.rank().number();
        assert_eq!((raw.starter(3), raw.rank_of(0), raw.colour_of(0)), (0, -1, -1));
        assert_eq!((raw.rank_of(raw.starter(2)), raw.colour_of(raw.starter(2))), (2, 0));
        let key = raw.register(4096, 0);
        assert!(key != 0 && raw.register(8, 99) == 0);
        assert_eq!((raw.address(key, 4097), raw.address(0, 0), raw.address(key, 8)), (0, 0, key + 8));
        let (own, next) = (raw.starter(me), raw.starter((me + 1) % 3));
        // The address of the next rank's region, through its starter memory.
        raw.0.store(GlobalAddress::from_bits(own).ok_or("own")?, raw.address(key, 0)).await?;
        raw.0.sync().await?;
        let told = raw.copy(own + 64, next, 8, NULL).await;
        raw.complete(told).await;
        assert_eq!((raw.inquire(told), raw.inquire(NULL), raw.inquire(1_000_000)), (0, 0, 0));
        let there: u64 = raw.0.load(GlobalAddress::from_bits(own + 64).ok_or("own")?).await?;
        assert_eq!(raw.rank_of(there), ((me + 1) % 3) as i32);
        // A word is copied there, incremented there, and copied back, each after the previous
        // operation.
        raw.0.store(GlobalAddress::from_bits(own + 72).ok_or("own")?, 40u32).await?;
        let put = raw.copy(there + 16, own + 72, 4, NULL).await;
        let added = raw.add4(own + 80, there + 16, 2, ALL).await;
        let got = raw.copy(own + 88, there + 16, 4, added).await;
        let last = raw.copy(own + 92, there + 16, 4, CONTINUE).await;
        assert!(0 < told && told < put && put < added && added < got && got < last);
        raw.complete(if me == 0 { last } else { ALL }).await;
        assert_eq!(raw.inquire(ALL), 0);
        let mut seen = [0u32; 4];
        raw.0.read(GlobalAddress::from_bits(own + 80).ok_or("own")?, &mut seen).await?;
        assert_eq!(seen, [40, 0, 42, 42]);
        assert_eq!((raw.copy(0, own, 8, NULL).await, raw.copy(own, 0, 8, NULL).await), (NULL, NULL));
        assert_eq!(raw.add4(own + 2, own, 1, NULL).await, NULL);
        assert_eq!(raw.add4(next, own, 1, NULL).await, NULL);
        raw.0.sync().await?;
        assert_eq!((raw.unregister(key), raw.unregister(key), raw.unregister(0)), (0, -1, -1));
        raw.0.finalize().await?;
        Ok(())
    });
}
