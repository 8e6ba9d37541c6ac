//! Cases of a single process.

use crate::{
    closing::region_over,
    line::{Ended, Line},
};
use fabric_ofi::{
    Amo, BadName, Domain, Endpoint, EndpointOptions, GetInto, Offer, OfiError, PutFrom, Reason, RemoteKey, Wanted,
    providers,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// Asserts that an expression is an error of this form.
macro_rules! assert_refused {
    ($result:expr, $form:pat) => {
        match $result {
            Err($form) => {}
            other => panic!("{}: {other:?}", stringify!($result)),
        }
    };
}

pub(crate) fn verdicts_are_correct_here() {
    let offers = providers(&Wanted::default().every_endpoint()).unwrap();
    for offer in &offers {
        assert!(offer.version >= (1, 17), "{offer:?}");
        let named = |name: &str| offer.provider == name;
        if offer.is_usable() {
            assert!(offer.data_bytes >= 8 && (1..=8).contains(&offer.key_bytes), "{offer:?}");
            drop(Line::open(&Domain::open(offer).unwrap(), EndpointOptions::default()));
        } else {
            assert_refused!(Domain::open(offer), OfiError::Unusable { .. });
        }
        // Without a layer above them, `tcp` and `net` have no endpoints with atomics.
        assert!(!(named("tcp") || named("net")) || !offer.is_usable(), "{offer:?}");
        if named("udp") {
            assert_eq!(offer.verdict, Some(Reason::EndpointType));
        }
    }
    let rdm = providers(&Wanted::default()).unwrap();
    assert!(rdm.iter().all(|offer| offer.verdict != Some(Reason::EndpointType)));
    if let Some(net) = rdm.iter().find(|offer| offer.provider == "net") {
        assert!(
            matches!(net.verdict, Some(Reason::NoAtomics | Reason::NoAtomic { .. } | Reason::NotTogether)),
            "{net:?}"
        );
    }
}

pub(crate) fn unknown_names_have_no_offers() {
    assert!(providers(&Wanted::default().provider("no-such-provider")).unwrap().is_empty());
    assert!(providers(&Wanted::default().provider("tcp;ofi_rxm").domain("no-such-domain")).unwrap().is_empty());
    assert_refused!(providers(&Wanted::default().domain("with\0zero")), OfiError::Wanted { .. });
}

pub(crate) fn invalid_names_are_refused(offer: &Offer) {
    let Line { mut endpoint, .. } = Line::open(&Domain::open(offer).unwrap(), EndpointOptions::default());
    let name = endpoint.name();
    for len in 0..name.len() {
        assert_refused!(endpoint.insert(&name[..len]), OfiError::Name(_));
    }
    let mut garbled = name.clone();
    garbled.push(0);
    assert_refused!(endpoint.insert(&garbled), OfiError::Name(BadName::Address { .. }));
    garbled.pop();
    garbled[9] ^= 1;
    assert_refused!(endpoint.insert(&garbled), OfiError::Name(BadName::Provider { .. }));
    assert_refused!(endpoint.insert(&[255; 4000]), OfiError::Name(BadName::Form { .. }));
    assert_eq!(endpoint.insert(&name).unwrap().index(), 0);
}

pub(crate) fn accesses_out_of_bounds_are_refused(offer: &Offer) {
    let domain = Domain::open(offer).unwrap();
    let (mut line, peer) = Line::with_itself(&domain, EndpointOptions::default());
    let endpoint = &mut line.endpoint;
    let region = domain.region(100).unwrap();
    let key = region.key();
    assert_eq!((region.size(), key.size()), (100, 100));
    assert_refused!(region.read(93, &mut [0; 8]), OfiError::OutOfBounds { whose: "own", .. });
    assert_refused!(region.write(usize::MAX, &[0; 8]), OfiError::OutOfBounds { .. });
    assert_refused!(region.load(96), OfiError::OutOfBounds { .. });
    assert_refused!(region.store(4, 1), OfiError::Misaligned { .. });
    region.store(88, 7).unwrap();
    assert_eq!(region.load(88).unwrap(), 7);
    let mut put = |from, offset| endpoint.put(peer, from, key, offset, None, 0);
    assert_refused!(put(PutFrom::Region(&region, 50..101), 0), OfiError::OutOfBounds { whose: "own", .. });
    assert_refused!(put(PutFrom::Region(&region, 0..50), 51), OfiError::OutOfBounds { whose: "remote", .. });
    assert_refused!(put(PutFrom::Bytes(&[0; 50]), 51), OfiError::OutOfBounds { whose: "remote", .. });
    assert_refused!(put(PutFrom::Bytes(&[]), u64::MAX), OfiError::OutOfBounds { whose: "remote", .. });
    #[allow(clippy::reversed_empty_ranges)]
    let backwards = GetInto::Region(&region, 50..10);
    assert_refused!(endpoint.get(peer, backwards, key, 0, 0), OfiError::OutOfBounds { .. });
    assert_refused!(endpoint.get(peer, GetInto::Own(usize::MAX), key, 0, 0), OfiError::OutOfBounds { .. });
    let mut change = |offset, width| endpoint.change(peer, key, offset, width, Amo::Add(1), 0);
    assert_refused!(change(12, 8), OfiError::Misaligned { width: 8, .. });
    assert_refused!(change(14, 4), OfiError::Misaligned { width: 4, .. });
    assert_refused!(change(0, 2), OfiError::Misaligned { width: 2, .. });
    assert_refused!(change(96, 8), OfiError::OutOfBounds { .. });
    assert_refused!(change(100, 4), OfiError::OutOfBounds { .. });
    assert_refused!(endpoint.load_word(peer, key, 4, 8, 0), OfiError::Misaligned { width: 8, .. });
    assert_refused!(endpoint.load_word(peer, key, 96, 8, 0), OfiError::OutOfBounds { .. });
    assert_refused!(RemoteKey::from_bytes(&[0; 23]), OfiError::Key { len: 23 });
    assert_refused!(domain.region(0), OfiError::Memory { bytes: 0, .. });
    assert_refused!(domain.region(usize::MAX), OfiError::Memory { .. });
    match Endpoint::open(&domain, EndpointOptions { message_bytes: usize::MAX, ..EndpointOptions::default() }) {
        Ok(endpoint) => assert_eq!(endpoint.limits().message, domain.longest(), "the provider's limit"),
        Err(OfiError::Memory { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    assert_eq!(line.progress(), 0, "nothing was posted");
}

pub(crate) fn peers_and_regions_of_others_are_refused(offer: &Offer) {
    let (domain, other_domain) = (Domain::open(offer).unwrap(), Domain::open(offer).unwrap());
    let (mut one, peer) = Line::with_itself(&domain, EndpointOptions::default());
    let mut two = Line::open(&domain, EndpointOptions::default());
    let (region, foreign) = (domain.region(64).unwrap(), other_domain.region(64).unwrap());
    let (key, put) = (region.key(), PutFrom::Region(&foreign, 0..8));
    assert_refused!(two.endpoint.send(peer, &[], 0), OfiError::Foreign { what: "peer" });
    assert_refused!(two.endpoint.get(peer, GetInto::Own(8), key, 0, 0), OfiError::Foreign { what: "peer" });
    assert_refused!(one.endpoint.put(peer, put, key, 0, None, 0), OfiError::Foreign { what: "region" });
    let change = one.post(|endpoint, tag| endpoint.change(peer, key, 0, 8, Amo::Swap(3), tag));
    assert_eq!(one.done(change), Ended::Word(0));
    assert_eq!(region.load(0).unwrap(), 3);
    region.store(8, 5 << 32 | 4).unwrap();
    for (offset, width, word) in [(8, 8, 5 << 32 | 4), (8, 4, 4), (12, 4, 5)] {
        let load = one.post(|endpoint, tag| endpoint.load_word(peer, key, offset, width, tag));
        assert_eq!(one.done(load), Ended::Word(word));
    }
}

/// An endpoint has as many operations in flight as its limit, and room again when they have
/// completed.
pub(crate) fn a_full_endpoint_has_no_room(offer: &Offer) {
    let domain = Domain::open(offer).unwrap();
    let (mut line, peer) = Line::with_itself(&domain, EndpointOptions { depth: 5, ..EndpointOptions::default() });
    let region = domain.region(64).unwrap();
    let key = region.key();
    assert_eq!(line.endpoint.limits().depth, 5);
    for round in 0..20 {
        let tags: Vec<u64> =
            (0..5).map(|_| line.post(|endpoint, tag| endpoint.change(peer, key, 0, 8, Amo::Add(1), tag))).collect();
        if round == 0 {
            // Some of them may have completed already where a post makes progress, but none was
            // reported.
            let full = line.endpoint.put(peer, PutFrom::Bytes(&[1; 4]), key, 0, None, 0);
            assert!(matches!(full, Ok(false)), "{full:?}");
        }
        let mut olds: Vec<u64> = tags
            .into_iter()
            .map(|tag| match line.done(tag) {
                Ended::Word(word) => word,
                other => panic!("an atomic returns {other:?}"),
            })
            .collect();
        olds.sort_unstable();
        assert!(olds.into_iter().eq(5 * round..5 * round + 5));
    }
    assert_eq!(region.load(0).unwrap(), 100);
}

/// Long puts of bytes take buffers, whose total size is limited.
pub(crate) fn the_size_of_buffers_is_limited(offer: &Offer) {
    const LEN: usize = 8 << 20;
    let domain = Domain::open(offer).unwrap();
    let (mut line, peer) = Line::with_itself(&domain, EndpointOptions::default());
    let region = domain.region(LEN).unwrap();
    let (key, bytes) = (region.key(), vec![6; LEN]);
    for _ in 0..2 {
        let post = |endpoint: &mut Endpoint, tag| endpoint.put(peer, PutFrom::Bytes(&bytes), key, 0, None, tag);
        // Before the first one, there may be no connection, and therefore no room.
        let mut tags = vec![line.post(post)];
        while let Some(tag) = line.post_within(std::time::Duration::ZERO, post).unwrap() {
            tags.push(tag);
            if tags.len() == 20 {
                break;
            }
        }
        tags.into_iter().for_each(|tag| assert_eq!(line.done(tag), Ended::Nothing));
    }
    let mut seen = vec![0; LEN];
    region.read(0, &mut seen).unwrap();
    assert!(seen == bytes);
}

pub(crate) fn an_endpoint_moves_to_another_thread(offer: &Offer) {
    let domain = Domain::open(offer).unwrap();
    let mut home = Line::open(&domain, EndpointOptions::default());
    let region = domain.region(64).unwrap();
    let key = region.key();
    // The owner of `home` makes progress while two threads add.
    let adders: Vec<_> = (0..2)
        .map(|_| {
            let (mut line, name) = (Line::open(&domain, EndpointOptions::default()), home.endpoint.name());
            thread::spawn(move || {
                let peer = line.endpoint.insert(&name).unwrap();
                for _ in 0..200 {
                    let tag = line.post(|endpoint, tag| endpoint.change(peer, key, 8, 8, Amo::Add(1), tag));
                    line.done(tag);
                }
            })
        })
        .collect();
    while adders.iter().any(|adder| !adder.is_finished()) {
        home.progress();
        thread::yield_now();
    }
    adders.into_iter().for_each(|adder| adder.join().unwrap());
    assert_eq!(region.load(8).unwrap(), 400);
}

pub(crate) fn dropped_regions_keep_their_addresses_while_an_endpoint_is_open(offer: &Offer) {
    let domain = Domain::open(offer).unwrap();
    drop(domain.region(4096).unwrap());
    assert_eq!(domain.retired_bytes(), 0, "no endpoint can write it");
    let (one, two) = (Line::open(&domain, EndpointOptions::default()), Line::open(&domain, EndpointOptions::default()));
    for _ in 0..3 {
        drop(domain.region(4096).unwrap());
    }
    assert_eq!(domain.retired_bytes(), 3 * 4096);
    drop(one);
    assert!(domain.retired_bytes() > 3 * 4096, "memory of the endpoint, too");
    drop(two);
    assert_eq!(domain.retired_bytes(), 0);
}

/// Memory of the caller: used in place, kept, and returned.
pub(crate) fn regions_are_opened_over_existing_memory(offer: &Offer) {
    let domain = Domain::open(offer).unwrap();
    let words: Arc<Vec<AtomicU64>> = Arc::new((0..64).map(AtomicU64::new).collect());
    let region = region_over(&domain, &words);
    let (mut line, peer) = Line::with_itself(&domain, EndpointOptions::default());
    let (key, size) = (region.key(), region.size());
    assert_eq!((size, region.load(40).unwrap()), (512, 5));
    let put = line.post(|endpoint, tag| endpoint.put(peer, PutFrom::Bytes(&[1; 8]), key, 48, None, tag));
    line.done(put);
    assert_eq!(words[6].load(Ordering::Acquire), u64::from_ne_bytes([1; 8]));
    words[7].store(77, Ordering::Release);
    let get = line.post(|endpoint, tag| endpoint.get(peer, GetInto::Own(8), key, 56, tag));
    assert_eq!(line.done(get), Ended::Bytes(77_u64.to_ne_bytes().to_vec()));
    drop(region);
    drop(line);
    assert_eq!(Arc::strong_count(&words), 1);
}
