//! What one process finds out by itself.

use crate::pair::BOUND;
use fabric_ofi::{Amo, BadName, Domain, Offer, OfiError, Reason, RemoteKey, Wanted, providers};
use std::thread;

/// Asserts that an expression is an error of this form.
macro_rules! assert_refused {
    ($result:expr, $form:pat) => {
        match $result {
            Err($form) => {}
            other => panic!("{}: {other:?}", stringify!($result)),
        }
    };
}

pub(crate) fn verdicts_are_true_here() {
    let offers = providers(&Wanted::default().every_endpoint()).unwrap();
    for offer in &offers {
        assert!(offer.version >= (1, 17), "{offer:?}");
        let named = |name: &str| offer.provider == name;
        if offer.is_usable() {
            assert!(offer.data_bytes >= 8 && (1..=8).contains(&offer.key_bytes), "{offer:?}");
            drop(Domain::open(offer).unwrap().endpoint().unwrap());
        } else {
            assert_refused!(Domain::open(offer), OfiError::Unusable { .. });
        }
        // Without a layer above, neither has endpoints with atomics.
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

pub(crate) fn names_that_are_no_use_are_refused(offer: &Offer) {
    let mut endpoint = Domain::open(offer).unwrap().endpoint().unwrap();
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
    let mut endpoint = domain.endpoint().unwrap();
    let peer = endpoint.insert(&endpoint.name()).unwrap();
    let region = domain.region(100).unwrap();
    let key = region.key();
    assert_eq!((region.size(), key.size()), (100, 100));
    assert_refused!(region.read(93, &mut [0; 8]), OfiError::OutOfBounds { whose: "own", .. });
    assert_refused!(region.write(usize::MAX, &[0; 8]), OfiError::OutOfBounds { .. });
    assert_refused!(region.load(96), OfiError::OutOfBounds { .. });
    assert_refused!(region.store(4, 1), OfiError::Misaligned { .. });
    region.store(88, 7).unwrap();
    assert_eq!(region.load(88).unwrap(), 7);
    assert_refused!(endpoint.put(peer, &region, 50..101, key, 0), OfiError::OutOfBounds { whose: "own", .. });
    assert_refused!(endpoint.put(peer, &region, 0..50, key, 51), OfiError::OutOfBounds { whose: "remote", .. });
    #[allow(clippy::reversed_empty_ranges)]
    let backwards = 50..10;
    assert_refused!(endpoint.get(peer, &region, backwards, key, 0), OfiError::OutOfBounds { .. });
    assert_refused!(endpoint.change(peer, key, 12, Amo::Add(1)), OfiError::Misaligned { .. });
    assert_refused!(endpoint.change(peer, key, 96, Amo::Add(1)), OfiError::OutOfBounds { .. });
    assert_refused!(RemoteKey::from_bytes(&[0; 23]), OfiError::Key { len: 23 });
    assert_refused!(domain.region(0), OfiError::Memory { bytes: 0, .. });
    assert_refused!(domain.region(usize::MAX), OfiError::Memory { .. });
}

pub(crate) fn what_is_of_another_endpoint_is_refused(offer: &Offer) {
    let (domain, other_domain) = (Domain::open(offer).unwrap(), Domain::open(offer).unwrap());
    let (mut one, mut two) = (domain.endpoint().unwrap(), domain.endpoint().unwrap());
    let (region, foreign) = (domain.region(64).unwrap(), other_domain.region(64).unwrap());
    let peer = one.insert(&one.name()).unwrap();
    assert_refused!(two.put(peer, &region, 0..8, region.key(), 0), OfiError::Foreign { what: "peer" });
    assert_refused!(one.put(peer, &foreign, 0..8, region.key(), 0), OfiError::Foreign { what: "region" });
    let token = one.change(peer, region.key(), 0, Amo::Swap(3)).unwrap();
    assert_refused!(two.test(&token), OfiError::Foreign { what: "token" });
    assert_eq!(one.wait(&token, BOUND).unwrap(), 0);
    assert_eq!(one.wait(&token, BOUND).unwrap(), 0, "a result stays as long as its token");
    assert_eq!(region.load(0).unwrap(), 3);
}

pub(crate) fn tokens_that_are_kept_fill_an_endpoint(offer: &Offer) {
    let domain = Domain::open(offer).unwrap();
    let mut endpoint = domain.endpoint().unwrap();
    let peer = endpoint.insert(&endpoint.name()).unwrap();
    let region = domain.region(64).unwrap();
    let mut kept = Vec::new();
    let limit = loop {
        match endpoint.change(peer, region.key(), 0, Amo::Add(1)) {
            Ok(token) => kept.push(token),
            Err(OfiError::Full { limit }) => break limit,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(kept.len(), limit);
    let mut olds: Vec<u64> = kept.iter().map(|token| endpoint.wait(token, BOUND).unwrap()).collect();
    olds.sort_unstable();
    assert!(olds.into_iter().eq(0..limit as u64));
    kept.pop();
    let token = endpoint.change(peer, region.key(), 0, Amo::Add(1)).unwrap();
    assert_eq!(endpoint.wait(&token, BOUND).unwrap(), limit as u64);
}

pub(crate) fn an_endpoint_moves_to_another_thread(offer: &Offer) {
    let domain = Domain::open(offer).unwrap();
    let home = domain.endpoint().unwrap();
    let region = domain.region(64).unwrap();
    let key = region.key();
    // The home's owner makes progress while two threads add.
    let adders: Vec<_> = (0..2)
        .map(|_| {
            let (mut endpoint, name) = (domain.endpoint().unwrap(), home.name());
            thread::spawn(move || {
                let peer = endpoint.insert(&name).unwrap();
                for _ in 0..200 {
                    let token = endpoint.change(peer, key, 8, Amo::Add(1)).unwrap();
                    endpoint.wait(&token, BOUND).unwrap();
                }
            })
        })
        .collect();
    let mut home = home;
    while adders.iter().any(|adder| !adder.is_finished()) {
        home.progress().unwrap();
        thread::yield_now();
    }
    adders.into_iter().for_each(|adder| adder.join().unwrap());
    assert_eq!(region.load(8).unwrap(), 400);
}

pub(crate) fn dropped_regions_keep_their_addresses(offer: &Offer) {
    let domain = Domain::open(offer).unwrap();
    assert_eq!(domain.retired_bytes(), 0);
    for _ in 0..3 {
        drop(domain.region(4096).unwrap());
    }
    assert_eq!(domain.retired_bytes(), 3 * 4096);
}
