//! Tables about reflects: the curves of the paper's figures 8 to 10, which print no numbers; the
//! ranges of the assumed values over which the orderings hold; and predictions.

use super::{headed, number, quantity, ruled, terminal, wrapped};
use crate::xmp_paper::{Flip, Nodes, Ordering, Swept, Version, XmpPlan, XmpRuns};
use comfy_table::Cell;

fn milliseconds(seconds: Option<f64>) -> String {
    seconds.map_or("–".to_owned(), |seconds| format!("{:.3}", seconds * 1e3))
}

/// Returns a table with a column for each number of nodes, and a line for each version.
fn by_version<'a>(
    versions: &[Version],
    nodes: &[Nodes],
    value: impl Fn(Version, u32) -> Option<f64> + 'a,
    written: impl Fn(f64) -> String + 'a,
) -> String {
    let mut table = ruled();
    let many = nodes.iter().map(|nodes| number(quantity::count(nodes.many().into())));
    table.set_header([Cell::new("nodes")].into_iter().chain(many));
    for version in versions {
        let name = format!("{version}{}", if version.is_papers() { "*" } else { "" });
        let cells = nodes.iter().map(|nodes| value(*version, nodes.many()).map_or("–".to_owned(), &written));
        table.add_row([Cell::new(name)].into_iter().chain(cells.map(number)));
    }
    terminal(table)
}

/// Returns the speed-ups of all versions.
pub fn speed_ups(runs: &XmpRuns) -> String {
    let table = by_version(
        &Version::ALL,
        &runs.plan.nodes,
        |of, on| runs.speed_up(of, on),
        |speed_up| format!("{speed_up:.1}"),
    );
    let XmpPlan { steps, stages, .. } = runs.plan;
    let less = if (steps, stages) == (XmpPlan::STEPS, XmpPlan::STAGES) {
        String::new()
    } else {
        let (all, of_each) = (XmpPlan::STEPS, XmpPlan::STAGES);
        format!(" Scaled: of {all} steps of {of_each} stages, all of them alike, {steps} of {stages}; --full runs all.")
    };
    format!(
        "\nREFLECTS ON K: how many times faster than one node\n{table}\n{}",
        wrapped(&format!(
            "* Figures 8 to 10 of the paper, curves without numbers. The message layer gathers blocks of derived datatypes on the \
             program's core, unless it puts block by block. `neighbours` is our prediction: RDMA in which only neighbours wait \
             for each other.{less}"
        ))
    )
}

/// Returns the gain of neighbours that wait for each other over two barriers, a line for each
/// number of nodes.
pub fn barriers_and_neighbours(runs: &XmpRuns) -> String {
    let names = ["barriers", "barrier unit", "neighbours", "neighbours, olap", "faster", "than the unit's"];
    let mut table = headed(&[&["nodes"], &names[..]].concat());
    for nodes in &runs.plan.nodes {
        let of = |version| runs.of(version, nodes.many());
        let all = [Version::Rdma, Version::RdmaUnit, Version::Blocks, Version::BlocksOverlap].map(of);
        let exchanging = all.map(|run| milliseconds(run.map(|run| run.exchanging)));
        let gain = |slower: usize| {
            let both = all[slower].zip(all[2]);
            both.map_or("–".to_owned(), |(slower, blocks)| {
                format!("{:.1} %", (slower.step / blocks.step - 1.0) * 100.0)
            })
        };
        let cells = [exchanging.to_vec(), vec![gain(0), gain(1)]].concat();
        table.add_row([quantity::count(nodes.many().into())].into_iter().chain(cells).map(number));
    }
    format!(
        "\nNEIGHBOURS INSTEAD OF BARRIERS: what a step on K exchanges for, in ms, not computing; how much faster a step is\n{}\n{}",
        terminal(table),
        wrapped(
            "A prediction without a published value; the paper names it as future work. Puts of blocks through the extended RDMA \
             interface in all of them. Without imbalance: what ranks wait for that compute longer comes on top."
        )
    )
}

/// Returns the times with eight ranks on each node.
pub fn flat_parallel(runs: &XmpRuns) -> String {
    let step = |of, on| runs.flat_of(of, on).map(|run| run.step * 1e3);
    let table = by_version(&Version::FLAT, &runs.plan.flat, step, |step| format!("{step:.3}"));
    format!("\nFLAT-PARALLEL: a step with eight ranks of one thread on each node, in ms\n{table}\n")
}

/// Returns the times of a step in the what-if cases.
pub fn what_if_reflects(runs: &XmpRuns) -> String {
    let mut table = ruled();
    table.set_header([Cell::new("what"), number("a step, ms".into()), number("not computing, ms".into())]);
    for (name, step, exchanging) in &runs.what_if {
        table.add_row([Cell::new(name), number(milliseconds(Some(*step))), number(milliseconds(Some(*exchanging)))]);
    }
    format!(
        "\nWHAT IF: the blocks of 1024 nodes on FX100\n{}\n{}",
        terminal(table),
        wrapped(
            "On 16 nodes, which take as long where only neighbours wait. Without layers of software but the network's, eight \
             threads a node, the same time to compute. Predictions without a published value."
        )
    )
}

/// Returns whether the orderings hold with the assumed values, and within which ranges they flip.
pub fn orderings(runs: &XmpRuns) -> String {
    let mut table = headed(&["", "1,024 nodes", "fewer nodes", "flips in the range of"]);
    for ordering in Ordering::ALL {
        let margin = runs.margin(ordering).map_or("–".to_owned(), |margin| format!("{:+.1} %", margin * 100.0));
        let below = runs.holds_below(ordering).map_or("–", |holds| if holds { "holds" } else { "does not hold" });
        let flips = runs.swept.iter().filter(|swept| swept.flips_inside(ordering));
        let flips: Vec<&str> = flips.map(|swept| short(swept.assumed.name)).collect();
        let [margin, below] = [margin, below.to_owned()].map(number);
        table.add_row([Cell::new(ordering), margin, below, Cell::new(flips.join(", "))]);
    }
    format!(
        "\nORDERINGS: by which share of the time they hold with what is assumed\n{}\n{}",
        terminal(table),
        wrapped(
            "Negative where an ordering does not hold. X6: pack faster than MPI by hand (on fewer nodes: equal within 5 %). X7: derived \
             datatypes slower than MPI; gathered, or (puts) put block by block. X8: overlap gains 10 % of asynchronous, which is slower \
             than synchronous. X9: RDMA with two barriers slower than by hand and than pack; (unit) with those of the barrier unit. On \
             fewer nodes a hundredth against it counts as equal."
        )
    )
}

/// Returns the values of each assumed constant for which the orderings hold.
pub fn assumed(runs: &XmpRuns) -> String {
    if runs.swept.is_empty() {
        return String::new();
    }
    let mut table = ruled();
    let head = ["constant", "assumed", "range"].into_iter().chain(Ordering::ALL.map(Ordering::id));
    table.set_header(head);
    for swept in &runs.swept {
        let (of, [low, high]) = (swept.assumed, swept.assumed.range);
        let range = format!("{} – {}", of.readable(low), of.readable(high));
        let holds = Ordering::ALL.map(|ordering| where_it_holds(swept, ordering));
        let first = [short(of.name).to_owned(), of.readable(of.default(&runs.plan.platform)), range];
        table.add_row(first.into_iter().chain(holds));
    }
    format!(
        "\nWHERE THE ORDERINGS HOLD: one constant changed at a time, a sixteenth to sixteen times, with the blocks of 1024 nodes\n{}\n{}",
        terminal(table),
        wrapped(
            "`always`, `never`: for all values that were tried. Flips are by a straight line between values. Barriers are those of \
             1,024 nodes; for imbalance, of 256 whose hops take twice as long."
        )
    )
}

/// Returns a constant's name without the prefix that all software layers share.
fn short(name: &str) -> &str {
    name.strip_prefix("software.").unwrap_or(name)
}

/// Returns the values for which an ordering holds.
pub(crate) fn where_it_holds(swept: &Swept, ordering: Ordering) -> String {
    let margins = swept.margins(ordering);
    let Some(&(_, first)) = margins.first() else { return "–".to_owned() };
    let flips = swept.flips(ordering);
    if flips.is_empty() {
        return if first > 0.0 { "always" } else { "never" }.to_owned();
    }
    let flip = |flip: &Flip| {
        // The longer a byte takes, the lower the rate.
        let above = flip.holds_above != swept.assumed.is_rate();
        format!("{} {}", if above { ">" } else { "<" }, swept.assumed.readable(flip.at))
    };
    flips.iter().map(flip).collect::<Vec<_>>().join(", ")
}
