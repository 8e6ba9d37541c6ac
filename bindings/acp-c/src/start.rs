//! Starting and ending: `acp_init`, `acp_reset`, `acp_finalize`, `acp_abort`.

use crate::{
    arguments::CommandLine,
    boundary::{end, say},
    error::{CallError, Result},
    hooks,
    library::{self, Library, Phase},
    machine::Machine,
    memory::OwnMemory,
    middle,
    names::internal,
    options::Options,
};
use acp::{Acp, Threads};
use core::ffi::c_int;
use observe::ProcessRecord;
use onesided::{Backend, block_on_short};
use rdma_fabric::{Fabric, Rank};
use std::process;

/// The regions that a rank can have registered at a time: all that addresses have numbers for.
const REGIONS: usize = 253;

/// Initializes the library. Collective. A word of the command line that is wrong ends the process, as
/// in ACP.
///
/// # Errors
/// [`CallError::Running`], [`CallError::Changing`]; the errors of attaching to the job; those of
/// [`Acp::init_with`]; [`CallError::Middle`].
pub(crate) fn init(line: Option<CommandLine>) -> Result<()> {
    let _changing = library::change()?;
    if library::running().is_ok() {
        return Err(CallError::Running);
    }
    let words = line.as_ref().map(CommandLine::to_words).unwrap_or_default();
    let (options, others) = Options::of(&words).unwrap_or_else(|problem| {
        say(&format!("acp: {problem}\n"));
        process::exit(libc::EXIT_FAILURE)
    });
    if let Some(line) = line {
        line.keep(&others);
    }
    internal::publish(&options);
    let library = match library::started() {
        // Its memory was allocated for the first time's options.
        Some(library) => {
            block_on_short(library.acp.reset(library.acp.fabric().rank()))?;
            library
        }
        None => library::store(begin(&options)?),
    };
    start_layers(library)
}

fn begin(options: &Options) -> Result<Library> {
    let bare = attach(options)?;
    let machine = Machine::of(&bare)?;
    let record = ProcessRecord::from_env(bare.rank())?;
    let fabric =
        record.as_ref().map_or_else(|| bare.clone(), |record| observe::observed(&bare, record.recorder().clone()));
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let of_acp = acp::Options::default()
        .threads(Threads::Many)
        .regions(REGIONS)
        .starter_bytes(bytes(options.starter_bytes))
        .channel_bytes(bytes(options.channel_bytes))
        .heap_bytes(bytes(options.heap_bytes));
    let acp = block_on_short(Acp::init_with(&fabric, of_acp))?;
    Ok(Library { acp, machine, own: OwnMemory::default(), middle: middle::State::default(), record })
}

/// Attaches this process to its job: that of ACP's launcher, or the one that the environment names.
fn attach(options: &Options) -> Result<Fabric> {
    Ok(match options.rank {
        Some(rank) if options.ranks > 1 => crate::acprun::attach(options, rank)?,
        _ => Backend::Cluster.attach()?,
    })
}

/// Lets calls use the library, and starts the middle layer, whose functions call the basic layer.
fn start_layers(library: &'static Library) -> Result<()> {
    library.own.begin(&library.acp)?;
    library::set_phase(Phase::Running);
    let started = block_on_short(library.acp.sync()).map_err(CallError::from).and_then(|()| hooks::start());
    if started.is_err() {
        library::set_phase(Phase::Finalized);
    }
    started
}

/// Ends the middle layer and all registrations, once no rank uses this one's memory any more.
fn end_layers(library: &'static Library) -> Result<()> {
    let completed = block_on_short(async { library.acp.complete_all().await.and(library.acp.sync().await) });
    let ended = hooks::end();
    library.unregister_all();
    completed.map_err(CallError::from).and(ended)
}

/// Finalizes. Collective: returns when all ranks have called it.
///
/// # Errors
/// [`CallError::NotRunning`], [`CallError::Changing`]; a failure of an operation, or of a rank. The
/// library is finalized in either case.
pub(crate) fn finalize() -> Result<()> {
    let _changing = library::change()?;
    let library = library::running()?;
    let ended = end_layers(library);
    let met = block_on_short(library.acp.clone().finalize());
    library::set_phase(Phase::Finalized);
    let written = library.record.as_ref().map_or(Ok(()), ProcessRecord::write);
    ended.and(met.map_err(CallError::from)).and(written.map_err(CallError::from))
}

/// Starts over with another rank. Collective.
///
/// # Errors
/// [`CallError::NoSuchRank`], [`CallError::Acp`], [`CallError::Middle`].
pub(crate) fn reset(rank: c_int) -> Result<()> {
    let _changing = library::change()?;
    let library = library::running()?;
    let ranks = library.acp.ranks();
    // All ranks take part, so that a wrong number is an error of all.
    let given = library.rank(rank);
    let number = given.as_ref().map_or_else(|_| Rank::new(ranks as u32), Rank::clone);
    end_layers(library)?;
    let done = block_on_short(library.acp.reset(number));
    let started = start_layers(library);
    given?;
    done?;
    started
}

/// Ends the job with a text.
pub(crate) fn abort(text: &str) -> ! {
    if library::started().is_some() {
        hooks::abort();
    }
    end(&format!("{text}\n"))
}

impl Library {
    /// Ends all registrations of the program.
    fn unregister_all(&self) {
        for key in self.own.take_registered() {
            // It was registered by this process, so this does not fail.
            let _ = self.acp.unregister(key);
        }
    }
}
