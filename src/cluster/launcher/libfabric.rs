//! Variables with which libfabric starts faster in ranks, and fits their devices. Variables that the
//! user has set are kept.

use std::{env, process::Command};
use tofu2_sim::shm::part::NO_HANDLERS;

/// Providers that every libfabric has: no other one need be queried, nor its libraries loaded.
const ALWAYS_THERE: [&str; 2] = ["tcp;ofi_rxm", "shm"];
/// Size in bytes of the buffers of `ofi_rxm`: the longest message that ranks send, and its head.
/// Most of the time for opening an endpoint is spent clearing memory, and the default is four times
/// this size.
const BUFFER: &str = "4608";

/// The number of ranks for which `ofi_rxm` sizes its queues at least. It asks for 256 entries for each
/// rank of the job that `FI_UNIVERSE_SIZE` states, and by default for 65,536; Soft-RoCE's queues have
/// at most 32,767.
const FEWEST: usize = 64;

/// Sets the variables for a rank of a job of `ranks`. `provider` is the provider that the rank uses, if
/// that is known.
pub(super) fn prepare(command: &mut Command, provider: Option<&str>, ranks: usize) {
    let mut set = |name: &str, value: &str| {
        if env::var_os(name).is_none() {
            command.env(name, value);
        }
    };
    set("FI_OFI_RXM_BUFFER_SIZE", BUFFER);
    set("FI_UNIVERSE_SIZE", &ranks.max(FEWEST).to_string());
    NO_HANDLERS.iter().for_each(|name| set(name, "1"));
    if let Some(provider) = provider.filter(|provider| ALWAYS_THERE.contains(provider)) {
        set("FI_PROVIDER", provider);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(provider: Option<&str>) -> Vec<String> {
        let mut command = Command::new("true");
        prepare(&mut command, provider, 4);
        command.get_envs().map(|(name, _)| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn queues_fit_the_job() {
        let size = |ranks| {
            let mut command = Command::new("true");
            prepare(&mut command, None, ranks);
            let (_, value) = command.get_envs().find(|(name, _)| *name == "FI_UNIVERSE_SIZE")?;
            value.map(|value| value.to_string_lossy().into_owned())
        };
        if env::var_os("FI_UNIVERSE_SIZE").is_none() {
            assert_eq!([2, 64, 1000].map(size), ["64", "64", "1000"].map(|size| Some(size.to_owned())));
        }
    }

    #[test]
    fn only_providers_that_are_there_are_asked_alone() {
        let is_asked_alone = |provider| variables(provider).iter().any(|name| name == "FI_PROVIDER");
        assert!(is_asked_alone(Some("tcp;ofi_rxm")) || env::var_os("FI_PROVIDER").is_some());
        assert!(!is_asked_alone(Some("verbs;ofi_rxm")) && !is_asked_alone(None));
    }
}
