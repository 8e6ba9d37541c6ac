//! Tables without published counterparts: questions that the papers raise and do not measure, and
//! further costs of exchanges next to the measured ones.

mod reflects;

pub(crate) use reflects::where_it_holds;
pub use reflects::{assumed, barriers_and_neighbours, flat_parallel, orderings, speed_ups, what_if_reflects};

use crate::{
    acp_paper::{AcpPlan, AcpRuns, Condition, How as Add, Load, initiators_in_words},
    fmpl_paper::{Alone, FmplPlan, FmplRuns},
    lock_paper::{StencilForm, StencilRun, WhatIf},
    prdma_paper::{How, Pattern, PrdmaPlan, PrdmaRuns},
    quantity,
    table::{number, ruled, terminal, wrapped},
    workloads::{Target, WAVES, messages::Library},
};
use comfy_table::{Cell, Table};
use prdma_offload::Form;

/// Returns the results for other forms of the lock, a line for each number of ranks; empty if none
/// was run.
pub fn what_if(waves: &[WhatIf]) -> String {
    if waves.is_empty() {
        return String::new();
    }
    let mut tnis: Vec<u32> = waves.iter().map(|wave| wave.tnis).collect();
    tnis.dedup();
    let mut table = ruled();
    let columns = || tnis.iter().flat_map(|tnis| WAVES.map(|form| (*tnis, form)));
    let head =
        columns().map(|(tnis, (_, form))| number(format!("{form}, {tnis} TNI{}", if tnis == 1 { "" } else { "s" })));
    table.set_header([number("ranks".into())].into_iter().chain(head));
    let mut ranks: Vec<u32> = waves.iter().map(|wave| wave.ranks).collect();
    ranks.sort_unstable();
    ranks.dedup();
    for ranks in ranks {
        let pair = |(tnis, (form, _))| {
            let wave = waves.iter().find(|wave| (wave.ranks, wave.tnis, wave.form) == (ranks, tnis, form));
            number(wave.map_or("–".into(), |wave| quantity::seconds(wave.pair())))
        };
        table.add_row([number(quantity::count(ranks.into()))].into_iter().chain(columns().map(pair)));
    }
    format!(
        "\nWHAT IF: all ranks lock_all at once and, when all have it, unlock_all; time of the slowest, 8 ranks a node\n{}\n{}",
        terminal(table),
        wrapped(
            "No figures of the paper: the modelled machine of its figures, latency network, one lock. `by node` and `tree of 64` \
             are its future work: the first and the last of each node, or group of nodes, go to the home for all of it. `each rank` is what it \
             compares itself with: a lock for each rank, which lock_all takes one after another; P² locks, so up to 256 ranks."
        )
    )
}

/// Returns the times of the stencils of the lock paper's Figures 4 and 5, a line for each number of
/// ranks; empty if none was run.
pub fn stencils(runs: &[StencilRun]) -> String {
    if runs.is_empty() {
        return String::new();
    }
    let mut table = ruled();
    table.set_header(
        ["ranks", "fence, put, fence: a step", "lock_all, get, flush_all: a step", "its lock, once"]
            .map(|head| number(head.into())),
    );
    for both in runs.chunks(StencilForm::ALL.len()) {
        let last = both.last().map_or(f64::NAN, |run| run.lock);
        let steps = both.iter().map(|run| number(quantity::seconds(run.step)));
        let ranks = both.first().map_or(0, |run| run.ranks);
        table.add_row(
            [number(quantity::count(ranks.into()))].into_iter().chain(steps).chain([number(quantity::seconds(last))]),
        );
    }
    format!(
        "\nDOES LOCK_ALL STENCIL CODE RUN? The paper's Figures 4 and 5, slowest rank, 8 ranks a node\n{}\n{}",
        terminal(table),
        wrapped(STENCIL_ANSWER)
    )
}

/// The answer of the stencils to the paper's question.
pub(crate) const STENCIL_ANSWER: &str = "Steps with lock_all are cheaper than fences at every size, for a step meets neighbours and a barrier only. What grows is the lock, taken once: linearly \
     if all ranks go to one home, and hardly if each node goes for its ranks (see what if). No figures of the paper.";

/// Returns the effect of other designs on an atomic add through global addresses, and on the
/// distance of the paper's A14.
pub fn global_adds(runs: &AcpRuns) -> String {
    let mut table = ruled();
    let mut header: Vec<_> = ["what"].map(Cell::new).into();
    header.extend(["remote, µs", "local, µs", "remote, over extended RDMA, µs"].map(|head| number(head.into())));
    table.set_header(header);
    let mpi = runs.micros(Add::Mpi, Target::Remote);
    let micros = |value: Option<f64>| number(value.map_or("–".to_owned(), |micros| format!("{micros:.2}")));
    for how in [Add::Table(Condition::TABLE[3]), Add::Mpi].into_iter().chain(Add::WHAT_IF) {
        let [remote, local] = Target::BOTH.map(|target| runs.micros(how, target));
        let over = remote.zip(mpi).map(|(remote, mpi)| remote - mpi).filter(|_| how != Add::Mpi);
        let published = matches!(how, Add::Table(_) | Add::Mpi);
        let name = Cell::new(format!("{}{}", how.name(), if published { "*" } else { "" }));
        table.add_row([name, micros(remote), micros(local), micros(over)]);
    }
    format!(
        "\nWHERE DO THE 1.42 MICROSECONDS GO? An atomic add of 4 bytes and its completion\n{}\n{}",
        terminal(table),
        wrapped(
            "* The paper measured these. All others are predictions without a published value. Ours charges the program what ACP does \
             for an operation of the network, and no communication helper; order in hardware assumes that a command costs the helper nothing."
        )
    )
}

/// Returns the slowdown of a rank's own adds while other ranks delegate copies to it, a line for
/// each form.
pub fn disturbances(runs: &AcpRuns) -> String {
    let mut table = ruled();
    let mut header: Vec<_> = ["who serves"].map(Cell::new).into();
    header.extend(AcpPlan::INITIATORS.map(|initiators| number(initiators_in_words(initiators))));
    header.push(number("lost with 16".into()));
    table.set_header(header);
    for load in Load::ALL {
        let of = |initiators| runs.disturbed(load, initiators);
        let cells = AcpPlan::INITIATORS.map(|initiators| {
            number(of(initiators).map_or("–".into(), |run| format!("{:.2} ({:.0})", run.add * 1e6, run.copies * 1e-3)))
        });
        let lost =
            of(16).zip(of(0)).map_or("–".into(), |(most, none)| quantity::deviation(most.add / none.add - 1.0));
        table.add_row([Cell::new(load.name())].into_iter().chain(cells).chain([number(lost)]));
    }
    format!(
        "\nDISTURBANCE: µs per remote atomic add while others delegate copies of 64 KiB to the adder (thousand copies/s)\n{}\n{}",
        terminal(table),
        wrapped("Predictions without a published value; the paper wants to suppress it and does not measure it.")
    )
}

/// Returns the curves of the FMPL paper's figures 8, 9 and 11, which print no numbers: a line for
/// each number of nodes.
pub fn collectives(runs: &FmplRuns) -> String {
    type Value = fn(&Alone) -> Option<f64>;
    let kinds: [(&str, Value); 3] = [
        ("barrier", |alone| Some(alone.barrier)),
        ("broadcast of 8 KB", |alone| alone.broadcast(FmplPlan::SHORT)),
        ("sum of 8 KB", |alone| Some(alone.reduction)),
    ];
    let mut text = "\nCOLLECTIVES ON SR8000: from the common beginning to the last member's end, in µs\n".to_owned();
    for (kind, value) in kinds {
        let names = Library::COLLECTIVE.map(Library::name);
        let mut table = headed(&[&["nodes"], names.as_slice()].concat());
        for nodes in 2..=FmplPlan::NODES {
            let micros = |library| runs.alone(library, nodes).and_then(value).map(|seconds| seconds * 1e6);
            let cells =
                Library::COLLECTIVE.map(|library| micros(library).map_or("–".into(), |us| format!("{us:.1}")));
            table.add_row([nodes.to_string()].into_iter().chain(cells).map(number));
        }
        text.push_str(&format!("{kind}\n{}\n\n", terminal(table)));
    }
    text + &wrapped(
        "Figures 8, 9 and 11 of the paper are curves without numbers. FMPL takes hardware where its members fill a rectangle (2 to \
         8 and 16 nodes). MPI and BLACS are software terms. What combining takes a CPU is not published and not charged.",
    )
}

const FAST: How = How::persistent(Form::Fast);
const MRC: How = How::persistent(Form::Mrc);
const CPU: How = How::persistent(Form::Cpu);
const FOUR: How = How::persistent(Form::Queues(4));
const TWO: How = How::persistent(Form::Queues(2));

/// The sizes in the first table; the report has all of them.
const SIZES: [usize; 7] = [0, 1024, 8192, 16_384, 32_768, 49_152, PrdmaPlan::MOST];

/// Returns start and wait of each form by size, in three dimensions, and with two ranks a node.
pub fn exchanges(runs: &PrdmaRuns) -> String {
    let micros = |pattern, how, size| {
        let seconds = runs.of(pattern, how).and_then(|run| run.at(size));
        seconds.map_or("–".to_owned(), |seconds| format!("{:.2}", seconds * 1e6))
    };
    let ratio = |pattern, size| {
        let ratios = runs.ratios(pattern, MRC, FAST);
        ratios.iter().find(|(at, _)| *at == size).map_or("–".to_owned(), |(_, ratio)| format!("{ratio:.2}"))
    };
    let mut by_size = headed(&[
        "bytes",
        "1-D FAST*",
        "1-D MRC*",
        "ratio*",
        "1-D CPU",
        "1-D FAST, made anew",
        "2-D FAST",
        "2-D 2 queues",
        "2-D MRC",
        "ratio",
    ]);
    for size in SIZES {
        let (line, plane) = (Pattern::Line, Pattern::Plane);
        by_size.add_row(
            [
                quantity::count(size as u64),
                micros(line, FAST, size),
                micros(line, MRC, size),
                ratio(line, size),
                micros(line, CPU, size),
                micros(line, How::anew(Form::Fast), size),
                micros(plane, FAST, size),
                micros(plane, TWO, size),
                micros(plane, MRC, size),
                ratio(plane, size),
            ]
            .map(number),
        );
    }
    let mut in_space = headed(&["neighbours", "FAST", "4 queues", "2 queues", "MRC", "CPU"]);
    for pattern in Pattern::AT_ONE_SIZE {
        let cells = [FAST, FOUR, TWO, MRC, CPU].map(|how| micros(pattern, how, PrdmaPlan::IN_SPACE));
        let first = format!("{} ({pattern})", pattern.neighbours());
        in_space.add_row([first].into_iter().chain(cells).map(number));
    }
    format!(
        "\nEXCHANGES: start and wait of the slowest of 36 ranks, one a node, in µs\n{}\n\n{} bytes to each neighbour, 36 nodes\n{}\n{}",
        terminal(by_size),
        quantity::count(PrdmaPlan::IN_SPACE as u64),
        terminal(in_space),
        wrapped(
            "* The paper measured these forms. All others are predictions without a published value, on the machine that the figures \
             above calibrate; nothing is compared."
        )
    )
}

fn headed(head: &[&str]) -> Table {
    let mut table = ruled();
    table.set_header(head.iter().map(|name| number((*name).to_owned())));
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{prdma_paper::run, progress::Progress, table::WIDTH};

    #[test]
    fn tables_fit_the_terminal_and_say_what_is_published() {
        let mut plan = PrdmaPlan { iterations: 2, warm_up: 1, ..PrdmaPlan::quick(0) };
        for job in &mut plan.jobs {
            job.sizes.retain(|size| [0, PrdmaPlan::IN_SPACE].contains(size));
        }
        plan.jobs.retain(|job| job.pattern != Pattern::Corners);
        let text = exchanges(&run(&plan, &mut Progress::silent()).expect("it runs"));
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(WIDTH)), "{text}");
        assert!(text.contains("1-D MRC*") && text.contains("without a published value"), "{text}");
        for row in ["6 (3-D 7-point)", "4 (2-D 5-point, two a node)"] {
            assert!(text.lines().any(|line| line.contains(row) && !line.contains('–')), "{text}");
        }
    }

    #[test]
    fn tables_about_global_addresses_fit_the_terminal_and_say_what_is_published() {
        let mut plan = AcpPlan { count: 2, window: 100_000_000, ..AcpPlan::quick(0) };
        plan.disturbances.retain(|(_, initiators)| *initiators < 4);
        let runs = crate::acp_paper::run(&plan, &mut Progress::silent()).expect("it runs");
        let text = global_adds(&runs) + &disturbances(&runs);
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(WIDTH)), "{text}");
        assert!(text.contains("hw desc*") && text.contains("without a published value"), "{text}");
    }
}
