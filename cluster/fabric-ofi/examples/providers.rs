//! Lists the providers that libfabric offers on this machine, and whether each is usable.
//!
//! ```text
//! cargo run -p fabric-ofi --features ofi --example providers [-- [--json] [--all] [PROVIDER]]
//! ```

use comfy_table::{Table, presets::ASCII_MARKDOWN};
use fabric_ofi::{AtomicKind, Offer, OfiError, Wanted, WordKind, providers};
use std::process::ExitCode;

/// Lists the providers that libfabric offers on this machine, and whether each is usable.
#[derive(clap::Parser)]
struct Options {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Print endpoints that are not reliable datagrams, too.
    #[arg(long)]
    all: bool,
    /// Print the offers of this provider only.
    provider: Option<String>,
}

fn main() -> ExitCode {
    let Options { json, all, provider } = clap::Parser::parse();
    let mut wanted = Wanted::default();
    if all {
        wanted = wanted.every_endpoint();
    }
    if let Some(provider) = provider {
        wanted = wanted.provider(&provider);
    }
    match print(&wanted, json) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("providers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(wanted: &Wanted, json: bool) -> Result<(), OfiError> {
    let offers = providers(wanted)?;
    if json {
        let all: Vec<_> = offers.iter().map(as_json).collect();
        println!("{:#}", serde_json::Value::from(all));
        return Ok(());
    }
    if offers.is_empty() {
        println!("libfabric has no such offer here.");
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header([
        "provider",
        "domain",
        "fabric",
        "addresses",
        "keys",
        "data",
        "longest",
        "u64 atomics",
        "verdict",
    ]);
    for offer in &offers {
        table.add_row(row(offer));
    }
    println!("{table}");
    let usable = offers.iter().filter(|offer| offer.is_usable()).count();
    let (major, minor) = offers[0].version;
    println!("{usable} of {} offers can be used; libfabric {major}.{minor}, asked for 1.17.", offers.len());
    Ok(())
}

fn row(offer: &Offer) -> [String; 9] {
    let atomics: Vec<_> = offer.atomics.fetching(WordKind::U64).map(AtomicKind::name).collect();
    let atomics = match atomics.len() {
        0 => "-".to_owned(),
        6 => "all".to_owned(),
        _ => atomics.join(" "),
    };
    [
        offer.provider.clone(),
        offer.domain.clone(),
        offer.fabric.clone(),
        if offer.virtual_addresses { "virtual" } else { "offsets" }.to_owned(),
        format!("{} B, {}", offer.key_bytes, if offer.provider_keys { "provider's" } else { "ours" }),
        format!("{} B", offer.data_bytes),
        bytes(offer.longest),
        atomics,
        offer.verdict.as_ref().map_or("usable".to_owned(), ToString::to_string),
    ]
}

fn bytes(count: usize) -> String {
    match count {
        count if count >= 1 << 50 => "any".to_owned(),
        count if count >= 1 << 30 => format!("{} GiB", count >> 30),
        count if count >= 1 << 20 => format!("{} MiB", count >> 20),
        count => format!("{count} B"),
    }
}

fn as_json(offer: &Offer) -> serde_json::Value {
    let atomics = WordKind::ALL.map(|word| {
        let names = |fetching| -> Vec<_> {
            AtomicKind::ALL
                .into_iter()
                .filter(|kind| offer.atomics.has(word, *kind, fetching))
                .map(AtomicKind::name)
                .collect()
        };
        (word.name().to_owned(), serde_json::json!({ "fetching": names(true), "plain": names(false) }))
    });
    let [read_after_write, write_after_read, write_after_write] = offer.ordered_bytes;
    serde_json::json!({
        "provider": offer.provider,
        "fabric": offer.fabric,
        "domain": offer.domain,
        "address_format": offer.address_format,
        "version": [offer.version.0, offer.version.1],
        "caps": offer.caps,
        "local_registration": offer.local_registration,
        "virtual_addresses": offer.virtual_addresses,
        "provider_keys": offer.provider_keys,
        "key_bytes": offer.key_bytes,
        "order": offer.order,
        "ordered_bytes": {
            "read_after_write": read_after_write,
            "write_after_read": write_after_read,
            "write_after_write": write_after_write,
        },
        "longest": offer.longest,
        "inject": offer.inject,
        "data_bytes": offer.data_bytes,
        "delivery": offer.delivery,
        "words": offer.words,
        "pin_limit": offer.pin_limit,
        "atomics": serde_json::Map::from_iter(atomics),
        "nic": offer.nic,
        "usable": offer.is_usable(),
        "reason": offer.verdict.as_ref().map(ToString::to_string),
    })
}
