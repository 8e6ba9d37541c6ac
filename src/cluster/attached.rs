//! Attached processes that another launcher started, and that can't become ranks of one job.

use bootstrap::{Bootstrap as _, Found, pmix::Pmix};
use rdma_fabric::FabricError;
use std::ffi::OsString;

/// Open MPI's number of ranks, which PMIx's own variables do not contain.
const OPEN_MPI_RANKS: &str = "OMPI_COMM_WORLD_SIZE";

/// Checks that this process, which is about to become a job of one rank, is not one of several ranks
/// that another launcher has started. `env` looks up its environment.
///
/// # Errors
/// [`FabricError::Setting`], which names the launcher; also if the variables contradict each other.
pub(crate) fn is_alone(env: &dyn Fn(&str) -> Option<OsString>) -> Result<(), FabricError> {
    let refused = |problem| Err(FabricError::setting("launcher", problem));
    let found = match bootstrap::detect(env) {
        Ok(None) => return Ok(()),
        Ok(Some(found)) => found,
        Err(error) => return refused(error.to_string()),
    };
    let ranks = match ranks(&found, env) {
        Ok(1) => return Ok(()),
        Ok(ranks) => ranks,
        Err(problem) => return refused(problem),
    };
    let (launcher, rank) = (found.launcher(), found.rank());
    refused(format!(
        "{launcher} started this process as rank {rank} of {ranks}, but only `onesided run` starts several ranks of \
         such a program: use `onesided run -n {ranks} -- PROGRAM`"
    ))
}

/// Returns the number of ranks; queries PMIx's server if no variable contains it.
fn ranks(found: &Found, env: &dyn Fn(&str) -> Option<OsString>) -> Result<usize, String> {
    if let Some(ranks) = found.ranks() {
        return Ok(ranks);
    }
    match env(OPEN_MPI_RANKS) {
        Some(text) => text
            .to_str()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| format!("{OPEN_MPI_RANKS} is {}, which is not a number of ranks", text.display())),
        None => Pmix::open(super::STEP).map(|store| store.ranks()).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(variables: &[(&str, &str)]) -> Option<String> {
        let env = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        is_alone(&env).err().map(|error| error.to_string())
    }

    const SLURM: [(&str, &str); 5] = [
        ("SLURM_JOB_ID", "9"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_PROCID", "1"),
        ("SLURM_JOB_NODELIST", "node1"),
        ("SLURM_NTASKS", "4"),
    ];

    #[test]
    fn several_ranks_of_any_launcher_are_refused_with_the_command_to_use() {
        let pmix = [("PMIX_RANK", "1"), ("PMIX_NAMESPACE", "job"), (OPEN_MPI_RANKS, "4")];
        let pmi1 = [("PMI_RANK", "1"), ("PMI_SIZE", "4"), ("PMI_FD", "5")];
        for (launcher, variables) in [("PMIx", &pmix[..]), ("PMI-1", &pmi1), ("Slurm", &SLURM)] {
            let told = told(variables).expect("an error");
            for part in [&format!("{launcher} started this process as rank 1 of 4"), "onesided run -n 4 -- PROGRAM"] {
                assert!(told.contains(part), "{part}: {told}");
            }
        }
    }

    #[test]
    fn one_rank_is_alone_under_any_launcher() {
        let pmix = [("PMIX_RANK", "0"), ("PMIX_NAMESPACE", "job"), (OPEN_MPI_RANKS, "1")];
        let pmi1 = [("PMI_RANK", "0"), ("PMI_SIZE", "1"), ("PMI_FD", "5")];
        for variables in [&[][..], &pmix, &pmi1] {
            assert_eq!(told(variables), None);
        }
        // A shell of `salloc`.
        assert_eq!(told(&[SLURM[0], SLURM[2], SLURM[4]]), None);
    }

    #[test]
    fn unreadable_variables_are_not_a_single_rank() {
        for variables in [
            &[("PMI_RANK", "0")][..],
            &[("PMIX_RANK", "0"), ("PMIX_NAMESPACE", "job"), (OPEN_MPI_RANKS, "many")],
            &SLURM[..4],
        ] {
            assert!(told(variables).is_some(), "{variables:?}");
        }
    }
}
