//! Pairs of processes that access each other's memory, over each available provider, and cases of a
//! single process. With `role` this program is one of the two processes of a case; otherwise it runs the
//! cases.

mod alone;
mod closing;
mod line;
mod memory;
mod messages;
mod pair;
mod wrong;

use fabric_ofi::Offer;
use pair::{PROVIDER_KEYS, Rank};
use process_tests::{Case, cases, named};
use std::{env, process::ExitCode};

/// The providers that cases are run over, with the interface of each; some of them also with
/// [`PROVIDER_KEYS`] after the name.
const PROVIDERS: &[(&str, Option<&str>)] = &[
    ("tcp;ofi_rxm", Some("lo")),
    ("tcp;ofi_rxm, provider keys", Some("lo")),
    ("shm", None),
    ("shm, provider keys", None),
    ("sockets", Some("lo")),
    ("sockets, provider keys", Some("lo")),
    ("udp;ofi_rxd", Some("lo")),
    ("verbs;ofi_rxm", None),
];

/// A function with its path.
type Named<F> = (&'static str, F);

/// Cases of two ranks: the function that each of them runs.
const PAIRS: &[Named<fn(Rank)>] = &named![
    memory::puts_arrive_with_their_data,
    memory::completed_puts_are_visible,
    memory::gets_return_the_bytes_of_the_other_rank,
    memory::atomics_of_both_ranks_lose_nothing,
    memory::large_puts_and_gets_are_complete,
    memory::more_operations_than_slots_are_posted,
    messages::a_flood_of_messages_arrives_complete_and_in_order,
    messages::messages_cross,
    messages::messages_that_are_too_long_are_refused,
    messages::a_sleeping_rank_is_woken,
    closing::endpoints_are_reopened,
    closing::a_closed_endpoint_receives_nothing,
    closing::memory_of_a_dropped_region_stays_for_late_bytes,
    closing::an_endpoint_is_dropped_with_gets_in_flight,
    wrong::a_wrong_key_changes_nothing,
    wrong::a_key_of_a_dropped_region_changes_nothing,
    wrong::forged_bounds_change_nothing,
    wrong::operations_to_a_dead_peer_fail_or_never_complete,
];

/// Cases of a single process, for one provider.
const ALONE: &[Named<fn(&Offer)>] = &named![
    alone::invalid_names_are_refused,
    alone::accesses_out_of_bounds_are_refused,
    alone::peers_and_regions_of_others_are_refused,
    alone::a_full_endpoint_has_no_room,
    alone::the_size_of_buffers_is_limited,
    alone::an_endpoint_moves_to_another_thread,
    alone::dropped_regions_keep_their_addresses_while_an_endpoint_is_open,
    alone::regions_are_opened_over_existing_memory,
];

/// Returns all cases over a provider.
fn cases_over(provider: &'static str, offer: &Offer) -> impl Iterator<Item = Case> {
    let alone = ALONE.iter().map(move |(name, case)| {
        let offer = offer.clone();
        Case::new(format!("{name} over {provider}"), move || case(&offer))
    });
    let pair = move |name| Case::new(format!("{name} over {provider}"), move || pair::run(name, provider));
    alone.chain(PAIRS.iter().map(move |(name, _)| pair(*name)))
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    if let [role, case, provider, rank] = &words[..]
        && role == "role"
    {
        let (_, play) = PAIRS.iter().find(|(name, _)| name == case).expect("a case");
        play(Rank::new(provider, rank));
        return ExitCode::SUCCESS;
    }
    let mut all = cases![alone::verdicts_are_correct_here, alone::unknown_names_have_no_offers];
    for (provider, domain) in PROVIDERS {
        let Some(offer) = pair::usable(provider, *domain) else {
            println!("SKIPPED: all cases over {provider}: {}", pair::why_not(provider));
            continue;
        };
        let cases = cases_over(provider, &offer);
        // One provider that chooses keys is enough without `--ignored`.
        if provider.ends_with(PROVIDER_KEYS) && !provider.starts_with("tcp") {
            all.extend(cases.map(Case::ignored));
        } else {
            all.extend(cases);
        }
    }
    process_tests::cases::run(all)
}
