//! One self-contained page: plots, table, constants, and the instructions to reproduce it.

mod exchange;
mod global;
mod lock;
mod messages;
mod plots;
mod reflects;
mod rows;

pub use plots::Throughput;

use crate::{
    ReproError,
    acp_paper::AcpRuns,
    fmpl_paper::FmplRuns,
    lock_paper::LockRuns,
    outcome::Row,
    platforms,
    prdma_paper::PrdmaRuns,
    provenance::{Provenance, short},
    quantity::count,
    xmp_paper::XmpRuns,
};
use plotters::style::RGBColor;
use std::{
    fmt::{self, Write},
    path::{Path, PathBuf},
};

/// The results by paper.
#[derive(Clone, Copy, Debug, Default)]
pub struct Results<'a> {
    /// The lock.
    pub lock: Option<&'a LockRuns>,
    /// Global addresses.
    pub acp: Option<&'a AcpRuns>,
    /// Persistent neighbourhood collectives.
    pub prdma: Option<&'a PrdmaRuns>,
    /// Messages.
    pub fmpl: Option<&'a FmplRuns>,
    /// Reflects.
    pub xmp: Option<&'a XmpRuns>,
}

/// Returns the path of the page in `directory`, which is created if necessary.
///
/// # Errors
/// [`ReproError::Write`].
pub fn page_in(directory: &Path) -> Result<PathBuf, ReproError> {
    let path = directory.join("index.html");
    match std::fs::create_dir_all(directory) {
        Ok(()) => Ok(path),
        Err(error) => Err(ReproError::Write { path, error }),
    }
}

/// Returns the plot of published locks and ours, as a separate SVG file.
///
/// # Errors
/// [`ReproError::Plot`].
pub fn peers(points: &[Throughput]) -> Result<String, ReproError> {
    plots::peers(points)
}

/// Returns the text of the page. The page is self-contained: style and plots are inlined, and it
/// contains no script, no font and no external link.
///
/// # Errors
/// [`ReproError::Plot`].
pub fn render(results: Results<'_>, rows: &[Row], made: &Provenance) -> Result<String, ReproError> {
    let lock = results.lock.map(|runs| lock::Section::draw(runs, rows)).transpose()?;
    let global = results.acp.map(global::Section::draw).transpose()?;
    let exchange = results.prdma.map(exchange::Section::draw).transpose()?;
    let messages = results.fmpl.map(messages::Section::draw).transpose()?;
    let reflects = results.xmp.map(reflects::Section::draw).transpose()?;
    let mut page = String::with_capacity(1 << 20);
    // Writing to a string does not fail.
    let sections = (lock.as_ref(), global.as_ref(), exchange.as_ref(), messages.as_ref(), reflects.as_ref());
    body(&mut page, sections, rows, made).ok();
    Ok(page)
}

const STYLE: &str = include_str!("style.css");

type Sections<'a, 'b> = (
    Option<&'a lock::Section<'b>>,
    Option<&'a global::Section<'b>>,
    Option<&'a exchange::Section<'b>>,
    Option<&'a messages::Section>,
    Option<&'a reflects::Section<'b>>,
);

fn body(
    page: &mut String,
    (lock, global, exchange, messages, reflects): Sections<'_, '_>,
    rows: &[Row],
    made: &Provenance,
) -> fmt::Result {
    write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Published figures, reproduced in virtual time</title><style>{STYLE}</style></head><body><main>"
    )?;
    page.push_str(
        "<h1>Published figures, reproduced in virtual time</h1>\
         <p class=\"lead\">From simulated Tofu networks, and a simulated SR8000. Few of the figures calibrate the model; the others have to come out of it.</p>",
    );
    if let Some(warning) = made.warning() {
        write!(page, "<p class=\"warning\">{}</p>", escaped(&warning))?;
    }
    rows::tiles(page, rows, made)?;
    if let Some(lock) = lock {
        lock.write(page)?;
    }
    if let Some(global) = global {
        global.write(page)?;
    }
    if let Some(exchange) = exchange {
        exchange.write(page)?;
    }
    if let Some(messages) = messages {
        messages.write(page)?;
    }
    if let Some(reflects) = reflects {
        reflects.write(page)?;
    }
    page.push_str("<h2>All figures</h2>");
    rows::table_of(page, rows)?;
    constants(page)?;
    provenance(page, made)?;
    page.push_str("</main></body></html>\n");
    Ok(())
}

fn constants(page: &mut String) -> fmt::Result {
    page.push_str("<h2>Constants of the machines</h2><p>No figure that the model predicts sets a constant.</p>");
    for platform in platforms::all() {
        write!(page, "<h3>{}</h3>", escaped(platform.name()))?;
        let rows = platform.constants().iter().map(|constant| {
            [
                format!("<code>{}</code>", escaped(constant.name)),
                escaped(&platforms::readable(constant)),
                escaped(&constant.from.join(", ")),
                escaped(&constant.note),
            ]
        });
        html_table(page, [".constant", "#value", ".set by", "source"], rows)?;
    }
    Ok(())
}

fn provenance(page: &mut String, made: &Provenance) -> fmt::Result {
    write!(
        page,
        "<h2>How this page was made</h2><pre>{}</pre><p>onesided {}, seed {}. Equal seed, equal trace: the joint hash \
         is <code>{:016x}</code>.</p>",
        escaped(&made.command),
        env!("CARGO_PKG_VERSION"),
        made.seed,
        made.trace_hash()
    )?;
    let rows = made.jobs.iter().map(|job| {
        [
            escaped(&job.label),
            count(job.cost.events),
            format!("{:.2}", job.cost.cpu_seconds),
            count(job.cost.bytes_per_rank),
            format!("<code>{}</code>", short(job.trace_hash)),
        ]
    });
    html_table(page, ["job", "#events", "#CPU s", "#B per rank", "trace"], rows)
}

/// Writes a table of markup. Columns named `#…` hold numbers, those named `.…` short keys.
fn html_table<const N: usize>(
    page: &mut String,
    columns: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> fmt::Result {
    page.push_str("<div class=\"scroll\"><table><thead><tr>");
    for column in columns {
        match column.strip_prefix('#') {
            Some(name) => write!(page, "<th class=\"n\">{name}</th>")?,
            None => write!(page, "<th>{}</th>", column.trim_start_matches('.'))?,
        }
    }
    page.push_str("</tr></thead><tbody>");
    for row in rows {
        page.push_str("<tr>");
        for (column, text) in columns.iter().zip(row) {
            let class = match column.as_bytes()[0] {
                b'#' => " class=\"n\"",
                b'.' => " class=\"k\"",
                _ => "",
            };
            write!(page, "<td{class}>{text}</td>")?;
        }
        page.push_str("</tr>");
    }
    page.push_str("</tbody></table></div>");
    Ok(())
}

/// Writes the legend of colours.
pub(super) fn key(page: &mut String, entries: &[(RGBColor, &str)]) -> fmt::Result {
    page.push_str("<ul class=\"key\">");
    for (RGBColor(r, g, b), words) in entries {
        write!(page, "<li><i style=\"background:#{r:02x}{g:02x}{b:02x}\"></i>{}</li>", escaped(words))?;
    }
    page.push_str("</ul>");
    Ok(())
}

/// Returns `text` with the five special characters of markup escaped.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn markup_is_text() {
        assert_eq!(super::escaped("<b a=\"1\">'&'</b>"), "&lt;b a=&quot;1&quot;&gt;&#39;&amp;&#39;&lt;/b&gt;");
    }
}
