//! Pairs of processes that access each other's memory, over each available provider, and cases of a
//! single process.
//!
//! Without arguments, or with parts of cases' names, this program runs the cases. With `rank` it is
//! one of their processes.

mod alone;
mod closing;
mod line;
mod memory;
mod messages;
mod pair;
mod wrong;

use std::{
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    time::Instant,
};

/// The providers that cases are run over, with the interface of each; some of them also with
/// [`pair::THEIR_KEYS`] after the name.
const PROVIDERS: &[(&str, Option<&str>)] = &[
    ("tcp;ofi_rxm", Some("lo")),
    ("tcp;ofi_rxm, its keys", Some("lo")),
    ("shm", None),
    ("shm, its keys", None),
    ("sockets", Some("lo")),
    ("sockets, its keys", Some("lo")),
    ("udp;ofi_rxd", Some("lo")),
];

/// A case with its name.
type Case<F> = (&'static str, F);

/// Cases of two ranks: the function that each of them runs.
const PAIRS: &[Case<fn(pair::Rank)>] = &[
    ("puts_arrive_and_tell", memory::puts_arrive_and_tell),
    ("puts_that_are_over_are_visible", memory::puts_that_are_over_are_visible),
    ("gets_bring_what_is_there", memory::gets_bring_what_is_there),
    ("atomics_of_both_ranks_lose_nothing", memory::atomics_of_both_ranks_lose_nothing),
    ("large_puts_and_gets_are_whole", memory::large_puts_and_gets_are_whole),
    ("many_operations_are_under_way", memory::many_operations_are_under_way),
    ("a_flood_of_messages_arrives_whole_and_in_order", messages::a_flood_of_messages_arrives_whole_and_in_order),
    ("messages_cross", messages::messages_cross),
    ("messages_that_are_too_long_are_refused", messages::messages_that_are_too_long_are_refused),
    ("whoever_sleeps_is_woken", messages::whoever_sleeps_is_woken),
    ("endpoints_are_opened_anew", closing::endpoints_are_opened_anew),
    ("a_closed_endpoint_receives_nothing", closing::a_closed_endpoint_receives_nothing),
    ("memory_of_a_dropped_region_stays", closing::memory_of_a_dropped_region_stays_for_late_bytes),
    ("an_endpoint_is_dropped_with_gets_under_way", closing::an_endpoint_is_dropped_with_gets_under_way),
    ("a_wrong_key_changes_nothing", wrong::a_wrong_key_changes_nothing),
    ("a_key_of_a_dropped_region_changes_nothing", wrong::a_key_of_a_dropped_region_changes_nothing),
    ("forged_bounds_change_nothing", wrong::forged_bounds_change_nothing),
    ("a_dead_peer_is_told_or_silent", wrong::a_dead_peer_is_told_or_silent),
];

/// Cases of a single process, for one provider.
const ALONE: &[Case<fn(&fabric_ofi::Offer)>] = &[
    ("names_that_are_no_use_are_refused", alone::names_that_are_no_use_are_refused),
    ("accesses_out_of_bounds_are_refused", alone::accesses_out_of_bounds_are_refused),
    ("what_is_of_another_endpoint_is_refused", alone::what_is_of_another_endpoint_is_refused),
    ("a_full_endpoint_has_no_room", alone::a_full_endpoint_has_no_room),
    ("buffers_have_an_end", alone::buffers_have_an_end),
    ("an_endpoint_moves_to_another_thread", alone::an_endpoint_moves_to_another_thread),
    ("dropped_regions_keep_their_addresses", alone::dropped_regions_keep_their_addresses_while_an_endpoint_is_open),
    ("regions_are_opened_over_memory_that_is_there", alone::regions_are_opened_over_memory_that_is_there),
];

/// Cases of the probe.
const PROBE: &[Case<fn()>] = &[
    ("verdicts_are_true_here", alone::verdicts_are_true_here),
    ("unknown_names_have_no_offers", alone::unknown_names_have_no_offers),
];

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    if let [role, case, provider, rank] = &words[..]
        && role == "rank"
    {
        let (_, play) = PAIRS.iter().find(|(name, _)| name == case).expect("a case");
        play(pair::Rank::new(provider, rank));
        return ExitCode::SUCCESS;
    }
    let filters: Vec<_> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let mut all: Vec<(String, Box<dyn Fn()>)> = Vec::new();
    for (name, case) in PROBE {
        all.push(((*name).to_owned(), Box::new(case)));
    }
    let asked = |provider: &str| filters.iter().any(|filter| provider.contains(filter.trim_start_matches("over ")));
    for (provider, domain) in PROVIDERS {
        // One provider that chooses keys is enough, unless others are requested.
        if provider.ends_with(pair::THEIR_KEYS) && !provider.starts_with("tcp") && !asked(provider) {
            continue;
        }
        let Some(offer) = pair::usable(provider, *domain) else {
            println!("SKIPPED: all cases over {provider}: {}", pair::why_not(provider));
            continue;
        };
        for (name, case) in ALONE {
            let offer = offer.clone();
            all.push((format!("{name} over {provider}"), Box::new(move || case(&offer))));
        }
        for (name, _) in PAIRS {
            all.push((format!("{name} over {provider}"), Box::new(|| pair::run(name, provider))));
        }
    }
    if words.iter().any(|word| word == "--ignored") {
        all.clear();
    }
    all.retain(|(name, _)| filters.is_empty() || filters.iter().any(|filter| name.contains(*filter)));
    let mut failed = 0;
    for (name, case) in &all {
        if words.iter().any(|word| word == "--list") {
            println!("{name}: test");
            continue;
        }
        let begun = Instant::now();
        let good = catch_unwind(AssertUnwindSafe(case)).is_ok();
        failed += usize::from(!good);
        println!("test {name} ... {} ({} ms)", if good { "ok" } else { "FAILED" }, begun.elapsed().as_millis());
    }
    println!("{} cases, {failed} failed", all.len());
    ExitCode::from(u8::from(failed > 0))
}
