//! The command-line options for starting a program.

use crate::{
    backend::{AtomicsBy, Backend, OnNode},
    observing,
    settings::{Amount, Seconds, faults_in, is_given, option, setting, variable, variables_for_ranks},
};
use rdma_fabric::FabricError;
use std::{ffi::OsString, path::PathBuf, time::Duration};
use tofu2_sim::{
    shm::{Bind, DEFAULT_SEGMENT_BYTES, DEFAULT_STUCK_AFTER, SEGMENT_VARIABLE, SegmentBytes, StuckAfter},
    virt::{Faults, Platform},
};

/// How to start a program.
///
/// | option | environment | meaning | default |
/// |---|---|---|---|
/// | `--ranks N` | `ONESIDED_RANKS` | number of ranks | 1 |
/// | `--fabric NAME` | `ONESIDED_FABRIC` | `shm`, `threads`, `cluster` or `virt` | `shm` |
/// | `--provider NAME` | `ONESIDED_PROVIDER` | cluster: libfabric's provider between nodes | `tcp;ofi_rxm` |
/// | `--on-node NAME` | | cluster: the transport between ranks of one node: `shm`, or `ofi` as if each were on a separate node | `shm` |
/// | `--atomics NAME` | `ONESIDED_ATOMICS` | cluster with one rank per node: the way to access words of other ranks: `cpu`, by the target's CPU, or `nic`, by libfabric's atomics | `cpu` |
/// | `--domain NAME` | `ONESIDED_DOMAIN` | cluster: libfabric's domain: the NIC, such as `mlx5_0`, or for sockets an interface | the one nearest to the rank's CPUs |
/// | `--interface NAME` | `ONESIDED_INTERFACE` | cluster: the network interface, or its address, at which the job's coordinator listens; without `--domain` also the domain, where the provider's domains are interfaces or NICs of this interface | the first |
/// | `--env NAME`, `--env NAME=VALUE` | | cluster: pass this variable of the launcher, or this value, to all ranks; may be repeated | variables that begin with `ONESIDED_` |
/// | `--hosts FILE` | `ONESIDED_HOSTS` | cluster: start ranks on these hosts, by ssh; a line is `HOST slots=N`, 1 slot by default | this machine |
/// | | `ONESIDED_SSH` | cluster: the command to use instead of ssh, with arguments separated by spaces | `ssh` |
/// | `--lease SECONDS` | | cluster: how long a rank may be silent before it counts as lost | 5 |
/// | `--stats` | `ONESIDED_STATS=1` | feature `observe`: print counters of operations and waits at the end, on standard error | off |
/// | `--trace FILE` | `ONESIDED_TRACE` | feature `observe`: write a trace that Perfetto reads | off |
/// | `--bind NAME` | `ONESIDED_BIND` | CPUs of each rank: `none` (any), `core` (one) or `numa` (those of a node); see [`Bind`] | `none` |
/// | `--stuck-after SECONDS` | `ONESIDED_STUCK_AFTER` | shm, threads, cluster: when all ranks have been parked for this long and none can be woken, end the job and print the waits of all ranks; `never` or 0: don't check | 10 |
/// | `--shared-address-space` | | all control queues of a rank share one address space, unlike those of Tofu2 | off |
/// | `--progress-thread` | | shm, threads: each rank has a thread that executes the work that other ranks' control queues have started, while the rank computes; `--stuck-after` then has no effect | off |
/// | `--ranks-per-node N` | | virt: ranks on each simulated machine; cluster without `--hosts`: number of ranks that count as one machine | 1; all |
/// | `--platform NAME` | | virt: `fx100`, `fx10` or `sr8000` | `fx100` |
/// | `--timeline FILE` | | virt, feature `observe`: write the activity of the simulated machine, for Perfetto: CPUs, control queues, TNIs, atomic units | off |
/// | `--faults FILE` | | virt: inject these faults, one per line; see [`tofu2_sim::virt::Faults`] | none |
/// | `--seed N` | | virt: shuffle simultaneous events by this seed; 0 keeps their order | 0 |
/// | `--jitter AMOUNT` | | virt: add a random latency up to this (`500ns`, `2us`, `1ms`) to each leg of an operation, drawn by the seed: puts overtake each other where the contract allows it | none |
///
/// Few events are simultaneous, so `--seed` alone has little effect. With `--jitter 2us` and one of
/// a few seeds, however, a flag that is put after data without a flush arrives before the data. The
/// same program, seed and jitter give the same run, with the same trace hash at its end.
///
/// The options of clusters alone (`--hosts`, `--provider`, `--domain`, `--interface`, `--env`,
/// `--on-node`, `--atomics`, `--lease`), and `ONESIDED_HOSTS`, select `--fabric cluster`; the options
/// are errors beside another fabric.
///
/// An option takes precedence over the environment; an empty value is an error. A process that
/// [`Launch`] or `onesided run` started as a rank ignores all of them and is that rank.
///
/// `--stats` and `--trace` put an observing provider (`onesided::observe::observed`) between the
/// program and its fabric; without them there is no such provider, and no cost. Ranks of
/// [`Launch::run_shared`] always have the bare fabric and are not observed; a message on standard
/// error says so. A program that was built without the feature `observe` refuses these options and
/// `--timeline`.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Number of ranks.
    pub ranks: usize,
    /// The number of ranks if it was requested explicitly, instead of by another launcher that
    /// started this process.
    pub asked_ranks: Option<usize>,
    /// The provider on which they run.
    pub backend: Backend,
    /// libfabric's provider between the nodes of a cluster.
    pub ofi: String,
    /// The transport between ranks of one node of a cluster.
    pub on_node: OnNode,
    /// How words of other ranks of a cluster are accessed; the same for all ranks.
    pub atomics: AtomicsBy,
    /// libfabric's domain between the nodes of a cluster: a NIC, or for sockets an interface.
    pub domain: Option<String>,
    /// The network interface, or its address, at which the coordinator of a cluster listens.
    pub interface: Option<String>,
    /// Variables that are set for all ranks of a cluster.
    pub env: Vec<(String, OsString)>,
    /// The file that lists the hosts of a cluster.
    pub hosts: Option<PathBuf>,
    /// How long a rank of a cluster may be silent before it counts as lost.
    pub lease: Duration,
    /// Number of bytes that each rank of a cluster can register.
    pub segment_bytes: usize,
    /// Number of ranks on each simulated machine, or on each node of a cluster on this machine;
    /// `None` means 1 for the former and all for the latter.
    pub ranks_per_node: Option<u32>,
    /// The simulated machine.
    pub platform: Platform,
    /// Seed of a simulated run. It shuffles simultaneous events unless it is 0.
    pub seed: u64,
    /// Longest random latency that is added to each leg of an operation in a simulated run.
    pub jitter: Duration,
    /// How long all ranks may be parked, with nothing able to wake them, before the job ends; see
    /// [`Launcher::stuck_after`](tofu2_sim::shm::Launcher::stuck_after).
    pub stuck_after: Option<Duration>,
    /// The CPUs that each rank may use. Virtual time has only one thread and ignores this.
    pub bind: Bind,
    /// Whether an address on one control queue denotes the same memory on the rank's other queues;
    /// see [`Launcher::shared_address_space`](tofu2_sim::shm::Launcher::shared_address_space). In
    /// virtual time this sets the platform's constant `shared_tags`.
    pub shared_address_space: bool,
    /// Whether each rank has a thread that executes the work that other ranks' control queues have
    /// started; see [`Launcher::progress_thread`](tofu2_sim::shm::Launcher::progress_thread). In
    /// virtual time the network interface does that, and this is ignored.
    pub progress_thread: bool,
    /// Counters and traces, with the feature `observe`.
    #[cfg(feature = "observe")]
    pub observe: observe::WantedReport,
    /// Where to write the timeline of a simulated run, with the feature `observe`.
    #[cfg(feature = "observe")]
    pub timeline: Option<PathBuf>,
    /// The faults of a simulated run.
    pub faults: Option<Faults>,
}

/// Options that only `--fabric cluster` has, and that select it.
const OF_CLUSTERS: [&str; 8] =
    ["--hosts", "--provider", "--domain", "--interface", "--env", "--on-node", "--atomics", "--lease"];

impl Default for Launch {
    fn default() -> Self {
        Launch {
            ranks: 1,
            asked_ranks: None,
            backend: Backend::Shm,
            ofi: "tcp;ofi_rxm".to_owned(),
            on_node: OnNode::Shm,
            atomics: AtomicsBy::Cpu,
            domain: None,
            interface: None,
            env: Vec::new(),
            hosts: None,
            lease: Duration::from_secs(5),
            segment_bytes: DEFAULT_SEGMENT_BYTES,
            ranks_per_node: None,
            platform: Platform::fx100(),
            seed: 0,
            jitter: Duration::ZERO,
            stuck_after: Some(DEFAULT_STUCK_AFTER),
            bind: Bind::None,
            shared_address_space: false,
            progress_thread: false,
            #[cfg(feature = "observe")]
            observe: observe::WantedReport::default(),
            #[cfg(feature = "observe")]
            timeline: None,
            faults: None,
        }
    }
}

/// Builds [`Launch::HELP`] with the parts that depend on the features: lines for all fabrics, lines
/// for virtual time, and an ending.
macro_rules! help {
    ($common:literal, $simulated:literal, $end:literal) => {
        concat!(
            "\
Ranks and what they run on:
  -n, --ranks N        number of ranks (1; ONESIDED_RANKS)
  --fabric NAME        shm: processes; threads; cluster: processes of several machines; virt: simulated, in virtual time (shm; ONESIDED_FABRIC)
  --bind NAME          CPUs of each rank: none, core or numa (none; ONESIDED_BIND)",
            $common,
            "
  --shared-address-space  one address space for all control queues of a rank (off)
  --progress-thread    threads that execute what control queues of others began; not in virtual time (off)
  --stuck-after S      end a job whose ranks all wait for each other after S seconds, or never (10; ONESIDED_STUCK_AFTER)
Of clusters:
  --hosts FILE         start ranks on these hosts by ssh, or by ONESIDED_SSH: lines of HOST slots=N (this machine; ONESIDED_HOSTS)
  --provider NAME      libfabric's provider between nodes (tcp;ofi_rxm; ONESIDED_PROVIDER)
  --on-node NAME       what ranks of one node use: shm, or ofi as if each were on its own (shm)
  --atomics NAME       who works on words of other ranks: cpu, the target's, or nic, with one rank a node (cpu; ONESIDED_ATOMICS)
  --domain NAME        the NIC, such as mlx5_0, or for sockets the interface (the nearest; ONESIDED_DOMAIN)
  --interface NAME     the network interface of the coordinator, or its address (the first; ONESIDED_INTERFACE)
  --env NAME[=VALUE]   pass this variable to all ranks, too; may be repeated
  --ranks-per-node N   without --hosts: take so many ranks of this machine for a node (all)
  --lease SECONDS      how long a rank may be silent before it counts as lost (5)
Of virtual time:
  --platform NAME      fx100, fx10, k or sr8000 (fx100)
  --ranks-per-node N   ranks on each simulated machine (1)",
            $simulated,
            "
  --faults FILE        let these things go wrong
  --seed N             shuffle events of one moment (0: keep their order)
  --jitter AMOUNT      add a random latency up to this to each leg of an operation, as 2us (none)
",
            $end
        )
    };
}

impl Launch {
    /// The options of [`Launch::from_args`], one per line, for a program's help text.
    pub const HELP: &str = if cfg!(feature = "observe") {
        help!(
            "
  --stats              print counters of operations and waits (ONESIDED_STATS=1)
  --trace FILE         write operations and waits for Perfetto (ONESIDED_TRACE)",
            "
  --timeline FILE      write what the simulated machine did for Perfetto",
            ""
        )
    } else {
        help!("", "", "Built without the feature `observe` of the crate `onesided`: no --stats, --trace, --timeline.\n")
    };

    /// Reads this process's arguments and environment. Also returns the arguments that are not
    /// options of this type, for the program's own use.
    ///
    /// # Errors
    /// [`FabricError::Setting`].
    pub fn from_args() -> Result<(Self, Vec<OsString>), FabricError> {
        let mut args = pico_args::Arguments::from_env();
        let mut launch = Launch::default();
        let short = args.opt_value_from_str::<_, usize>("-n").map_err(|error| setting("-n", error.to_string()))?;
        let long = option(&mut args, "--ranks", Some("ONESIDED_RANKS"))?;
        if let Some(ranks) = short.or(long) {
            (launch.ranks, launch.asked_ranks) = (ranks, Some(ranks));
        }
        let backend = option(&mut args, "--fabric", Some("ONESIDED_FABRIC"))?;
        let of_clusters = OF_CLUSTERS.into_iter().find(|name| is_given(&args, name));
        match (backend, of_clusters) {
            (None | Some(Backend::Cluster), Some(_)) => launch.backend = Backend::Cluster,
            (Some(_), Some(name)) => return Err(setting(name, "only `--fabric cluster` has it".into())),
            (backend, None) => launch.backend = backend.unwrap_or_default(),
        }
        launch.ranks_per_node = option(&mut args, "--ranks-per-node", None)?;
        if let Some(ofi) = option(&mut args, "--provider", Some("ONESIDED_PROVIDER"))? {
            launch.ofi = ofi;
        }
        if let Some(on_node) = option(&mut args, "--on-node", None)? {
            launch.on_node = on_node;
        }
        if let Some(atomics) = option(&mut args, "--atomics", Some("ONESIDED_ATOMICS"))? {
            launch.atomics = atomics;
        }
        launch.domain = option(&mut args, "--domain", Some("ONESIDED_DOMAIN"))?;
        launch.interface = option(&mut args, "--interface", Some("ONESIDED_INTERFACE"))?;
        launch.env = variables_for_ranks(&mut args)?;
        launch.hosts = option(&mut args, "--hosts", Some("ONESIDED_HOSTS"))?;
        if launch.hosts.is_some() && backend.is_none() {
            launch.backend = Backend::Cluster;
        }
        if let Some(Seconds(lease)) = option(&mut args, "--lease", None)? {
            launch.lease = lease;
        }
        if let Some(SegmentBytes(bytes)) = variable(SEGMENT_VARIABLE)? {
            launch.segment_bytes = bytes;
        }
        let seed = option(&mut args, "--seed", None)?;
        launch.seed = seed.unwrap_or(0);
        if let Some(Amount(jitter)) = option(&mut args, "--jitter", None)? {
            launch.jitter = jitter;
        }
        if let Some(StuckAfter(bound)) = option(&mut args, "--stuck-after", Some("ONESIDED_STUCK_AFTER"))? {
            launch.stuck_after = bound;
        }
        if let Some(bind) = option(&mut args, "--bind", Some("ONESIDED_BIND"))? {
            launch.bind = bind;
        }
        launch.shared_address_space = args.contains("--shared-address-space");
        launch.progress_thread = args.contains("--progress-thread");
        observing::from_args(&mut launch, &mut args)?;
        let platform = option::<String>(&mut args, "--platform", None)?;
        match platform.as_deref() {
            None | Some("fx100") => {}
            Some("fx10") => launch.platform = Platform::fx10(),
            Some("k") => launch.platform = Platform::k(),
            Some("sr8000") => launch.platform = Platform::sr8000(),
            Some(other) => {
                return Err(setting("--platform", format!("`{other}` is not one of fx100, fx10, k, sr8000")));
            }
        }
        if launch.ranks == 0 || launch.ranks_per_node == Some(0) {
            return Err(setting("--ranks", "a job has at least one rank".into()));
        }
        if let Some(path) = option::<PathBuf>(&mut args, "--faults", None)? {
            launch.faults = Some(faults_in(&path).map_err(|problem| setting("--faults", problem))?);
        }
        if launch.faults.is_some() && launch.backend != Backend::Virt {
            return Err(setting("--faults", "only `--fabric virt` has them".into()));
        }
        let simulated_only =
            [("--jitter", !launch.jitter.is_zero()), ("--seed", seed.is_some()), ("--platform", platform.is_some())];
        for (name, is_given) in simulated_only {
            if is_given && launch.backend != Backend::Virt {
                return Err(setting(name, "only `--fabric virt` has it".into()));
            }
        }
        Ok((launch, args.finish()))
    }
}
