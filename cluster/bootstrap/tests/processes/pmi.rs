//! A PMI-1 launcher, limited to the requests that this crate uses.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    sync::{Arc, Barrier, Mutex},
    thread,
};

/// The store of a launcher for some ranks. Its limit on values is low, so that values need parts.
#[derive(Clone)]
pub(crate) struct Launcher {
    store: Arc<Mutex<HashMap<String, String>>>,
    barrier: Arc<Barrier>,
}

impl Launcher {
    pub(crate) fn new(ranks: usize) -> Self {
        Self { store: Arc::default(), barrier: Arc::new(Barrier::new(ranks)) }
    }

    /// Returns a rank's end of a new connection, which a thread serves.
    pub(crate) fn connect(&self) -> UnixStream {
        let (here, there) = UnixStream::pair().expect("a pair of sockets");
        let this = self.clone();
        thread::spawn(move || {
            let lines = BufReader::new(here.try_clone().expect("a duplicate")).lines();
            for line in lines.map_while(Result::ok) {
                let answer = this.answer(&line);
                let _ = (&here).write_all(answer.as_bytes());
            }
        });
        there
    }

    fn answer(&self, line: &str) -> String {
        let fields: HashMap<&str, &str> = line.split(' ').filter_map(|field| field.split_once('=')).collect();
        let mut store = self.store.lock().expect("no panic");
        match fields["cmd"] {
            "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n".into(),
            "get_maxes" => "cmd=maxes kvsname_max=256 keylen_max=32 vallen_max=40\n".into(),
            "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_1\n".into(),
            "put" => {
                assert!(fields["key"].len() < 32 && fields["value"].len() < 40 && fields["kvsname"] == "kvs_1");
                let old = store.insert(fields["key"].into(), fields["value"].into());
                format!("cmd=put_result rc={}\n", if old.is_some() { "-1 msg=duplicate_key" } else { "0 msg=success" })
            }
            "get" => match store.get(fields["key"]) {
                Some(value) => format!("cmd=get_result rc=0 msg=success value={value}\n"),
                None => "cmd=get_result rc=-1 msg=key_not_found value=unknown\n".into(),
            },
            "barrier_in" => {
                drop(store);
                self.barrier.wait();
                "cmd=barrier_out\n".into()
            }
            "finalize" => "cmd=finalize_ack\n".into(),
            other => panic!("{other}"),
        }
    }
}
