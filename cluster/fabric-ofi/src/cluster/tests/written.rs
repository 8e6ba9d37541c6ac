//! Puts wake their targets over networks that deliver 8, 4 or no bytes of data with a put.

use super::*;
use crate::{Endpoint, EndpointOptions, OfiError, PutFrom};
use rdma_fabric::{Deps, RemoteAddr};

const DATA_BYTES: [usize; 3] = [8, 4, 0];

/// A rank waits for the last word of `len` bytes, which another rank puts.
fn a_put_ends_a_wait(data_bytes: usize, len: usize) {
    let ranks = Ranks::over(2, || domain_with_data(data_bytes).limited(4096));
    let region = ranks.region(1, len);
    let waiting = ranks.members[1].clone();
    let own = region.word::<u64>(&waiting.fabric(), len - 8).unwrap();
    let (over, waits) = done_within(SHORT, move || {
        let fabric = waiting.fabric();
        block_on(fabric.wait_until(&own, Deps::Ranks(&[Rank::new(0)]), |word| word == u64::MAX))
    });
    assert!(!over, "nothing was put");
    let there = ranks.members[0].fabric();
    let served = || ranks.members[1].counters().served;
    let before = served();
    let to = there.remote_span::<u8>(RemoteAddr { offset: 0, ..ranks.at(1, &region) }, len).unwrap();
    block_on(there.put_slice(&to, &vec![0xff; len])).unwrap();
    assert!(becomes(|| waits.is_finished()), "{data_bytes} bytes of data, a put of {len} bytes");
    assert_eq!(waits.join().unwrap(), Ok(u64::MAX));
    assert!(ranks.members[0].quiesce(LONG));
    // Without it the wait ends as well, when the rank looks again.
    assert_eq!(served() - before, u64::from(data_bytes == 0), "a message in place of data");
}

#[test]
fn a_parked_wait_ends_by_a_put() {
    for data_bytes in DATA_BYTES {
        // At once, and in several transfers.
        [16, 3 * 4096].into_iter().for_each(|len| a_put_ends_a_wait(data_bytes, len));
    }
}

#[test]
fn data_that_does_not_fit_is_refused() {
    for limit in DATA_BYTES {
        let domain = domain_with_data(limit);
        let mut endpoint = Endpoint::open(&domain, EndpointOptions::default()).unwrap();
        assert_eq!(endpoint.limits().data, limit);
        let (peer, region) = (endpoint.insert(&endpoint.name()).unwrap(), domain.region(8).unwrap());
        let mut put = |data| endpoint.put(peer, PutFrom::Bytes(&[1; 8]), region.key(), 0, data, 0);
        assert!(put(None).is_ok());
        for (data, least) in [(u64::from(u32::MAX), 4), (1 << 32, 8)] {
            match put(Some(data)) {
                Ok(_) => assert!(limit >= least),
                Err(error) => {
                    assert!(matches!(error, OfiError::Data { limit: of, .. } if of == limit && limit < least))
                }
            }
        }
    }
}
