//! The plots, as SVG elements for the page. Legends are the page's.

mod canvas;
mod exchange;
mod fetch_adds;
mod finishing;
mod scaling;
mod what_if;

pub(super) use canvas::{MRC, NULL, OURS, THEIRS, WAIT};
pub(super) use exchange::{exchange_ratio, exchange_time};
pub(super) use fetch_adds::fetch_adds;
pub(super) use finishing::{by_hops, by_rank};
pub(super) use scaling::{latency, share};
pub(super) use what_if::{colour, waves};
