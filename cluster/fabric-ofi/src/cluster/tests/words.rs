//! Loads and stores of words over networks whose puts and gets keep words whole.

use super::*;
use crate::cluster::Counters;
use rdma_fabric::{Deps, RemoteAddr};

fn keeping_words(data_bytes: usize, delivery: bool) -> Domain {
    let mut offer = offer(Wanted::default().without_atomics());
    assert!(!offer.words, "software copies bytes");
    (offer.words, offer.data_bytes, offer.delivery) = (true, data_bytes, delivery);
    Domain::open(&offer).unwrap()
}

#[test]
fn loads_and_stores_go_by_gets_and_puts_and_atomics_by_messages() {
    let ranks = Ranks::over(2, || keeping_words(4, false));
    let (region, own) = (ranks.region(1, 64), ranks.region(0, 64));
    let fabric = ranks.members[0].fabric();
    let at = |offset: u64| RemoteAddr { offset, ..ranks.at(1, &region) };
    let before = ranks.members[0].counters();
    let done = |what: fn(&Counters) -> u64| what(&ranks.members[0].counters()) - what(&before);
    block_on(async {
        let word = fabric.remote_word::<u64>(at(8)).unwrap();
        fabric.put_word(&word, 7).await.unwrap();
        fabric.flush(Rank::new(1)).await.unwrap();
        assert_eq!(fabric.get_word(&word).await.unwrap(), 7);
        let narrow = fabric.remote_word::<u32>(at(20)).unwrap();
        fabric.put_word(&narrow, u32::MAX).await.unwrap();
        fabric.flush(Rank::new(1)).await.unwrap();
        assert_eq!(fabric.get_word(&narrow).await.unwrap(), u32::MAX);
        let mine = own.span::<u64>(&fabric, 16, 1).unwrap();
        let mine = fabric.get(&fabric.remote_span::<u64>(at(8), 1).unwrap(), mine).await.unwrap();
        let mut seen = [0];
        fabric.read(&mine, &mut seen).unwrap();
        assert_eq!(seen, [7]);
        assert_eq!(done(|of| of.messages), 0);
        // Two stores; three loads, and a get for each flush.
        assert_eq!((done(|of| of.writes), done(|of| of.reads)), (2, 5));
        assert_eq!(fabric.fetch_add(&word, 1).await.unwrap(), 7);
        assert_eq!(fabric.get_word(&word).await.unwrap(), 8);
        assert_eq!(done(|of| of.messages), 1);
    });
}

#[test]
fn a_parked_wait_ends_by_a_store() {
    for data_bytes in [8, 4, 0] {
        let ranks = Ranks::over(2, || keeping_words(data_bytes, true));
        let region = ranks.region(1, 64);
        let waiting = ranks.members[1].clone();
        let own = region.word::<u64>(&waiting.fabric(), 8).unwrap();
        let (over, waits) = done_within(SHORT, move || {
            let fabric = waiting.fabric();
            block_on(fabric.wait_until(&own, Deps::Ranks(&[Rank::new(0)]), |word| word == 5))
        });
        assert!(!over, "nothing was stored");
        let fabric = ranks.members[0].fabric();
        let word = fabric.remote_word::<u64>(RemoteAddr { offset: 8, ..ranks.at(1, &region) }).unwrap();
        block_on(fabric.put_word(&word, 5)).unwrap();
        assert!(becomes(|| waits.is_finished()), "{data_bytes} bytes of data");
        assert_eq!(waits.join().unwrap(), Ok(5));
        assert!(ranks.members[0].quiesce(LONG));
    }
}
