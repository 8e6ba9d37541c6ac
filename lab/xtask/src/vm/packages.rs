//! The requirements of machines: programs of this machine, and Debian's packages of a kernel and of sshd, which
//! are unpacked, not installed.

use crate::installed::is_installed;
use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Programs, each with the Debian package that has it.
const PROGRAMS: [(&str, &str); 11] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("cpio", "cpio"),
    ("depmod", "kmod"),
    ("modprobe", "kmod"),
    ("ip", "iproute2"),
    ("rdma", "iproute2"),
    ("ssh", "openssh-client"),
    ("ssh-keygen", "openssh-client"),
    ("apt-get", "apt"),
    ("dpkg", "dpkg"),
];

/// The library that verbs uses for Soft-RoCE, and its package.
const DRIVER: (&str, &str) = ("librxe", "ibverbs-providers");

/// Packages that are unpacked beside the kernel's: sshd, and the library that it needs.
const UNPACKED: [&str; 2] = ["openssh-server", "libwrap0"];

/// A kernel with its modules, and sshd.
pub(super) struct Packages {
    root: PathBuf,
    pub(super) version: String,
}

/// Returns the reason why this machine can't have machines, if it can't.
pub(super) fn obstacle() -> Option<String> {
    if std::env::consts::ARCH != "x86_64" {
        return Some("machines are x86-64 ones, as this one must be".to_owned());
    }
    let mut missing: Vec<&str> =
        PROGRAMS.iter().filter(|(program, _)| !is_installed(program)).map(|(_, package)| *package).collect();
    let drivers = ["/usr/lib/x86_64-linux-gnu/libibverbs", "/usr/lib64/libibverbs", "/usr/lib/libibverbs"];
    let has_driver = |folder: &&str| {
        let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.into_iter().any(|name| name.to_string_lossy().starts_with(DRIVER.0))
    };
    if !drivers.iter().any(has_driver) {
        missing.push(DRIVER.1);
    }
    missing.dedup();
    (!missing.is_empty()).then(|| format!("packages are missing: {}", missing.join(", ")))
}

impl Packages {
    /// Downloads and unpacks the packages that are not in `root` yet.
    ///
    /// # Errors
    /// The packages can't be downloaded.
    pub(super) fn in_directory(root: &Path) -> Result<Self> {
        fs::create_dir_all(root)?;
        let version = match kernel_in(root) {
            Some(version) => version,
            None => {
                unpack(root, &kernel_package()?)?;
                kernel_in(root).ok_or("the package of the kernel has no /boot/vmlinuz-…")?
            }
        };
        if !root.join("usr/sbin/sshd").exists() {
            UNPACKED.iter().try_for_each(|package| unpack(root, package))?;
        }
        if !root.join(format!("lib/modules/{version}/modules.dep")).exists() {
            run(Command::new("/usr/sbin/depmod").arg("-b").arg(root).arg(&version))?;
        }
        Ok(Self { root: root.to_owned(), version })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn kernel(&self) -> PathBuf {
        self.root.join(format!("boot/vmlinuz-{}", self.version))
    }

    /// Returns the files of a module and of those that it needs, in the order of their loading.
    pub(super) fn module_files(&self, module: &str) -> Result<Vec<PathBuf>> {
        let mut modprobe = Command::new("/usr/sbin/modprobe");
        modprobe.arg("-d").arg(&self.root).args(["-S", &self.version, "--show-depends", module]);
        let listed = run(&mut modprobe)?;
        let files = listed.lines().filter_map(|line| line.strip_prefix("insmod ")?.split_whitespace().next());
        Ok(files.map(PathBuf::from).collect())
    }
}

fn kernel_in(root: &Path) -> Option<String> {
    let names = fs::read_dir(root.join("boot")).ok()?.flatten().map(|entry| entry.file_name());
    let mut versions: Vec<String> =
        names.filter_map(|name| Some(name.to_str()?.strip_prefix("vmlinuz-")?.to_owned())).collect();
    versions.sort();
    versions.pop()
}

/// Returns the package that the metapackage of kernels names. Kernels for clouds lack `rdma_rxe`.
fn kernel_package() -> Result<String> {
    let listed = run(Command::new("apt-cache").args(["depends", "linux-image-amd64"]))?;
    let mut names = listed.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let name = names.find(|name| name.starts_with("linux-image-")).ok_or("apt knows no kernel (linux-image-amd64)")?;
    Ok(name.to_owned())
}

fn unpack(root: &Path, package: &str) -> Result<()> {
    eprintln!("downloading {package} …");
    let folder = tempfile::tempdir_in(root)?;
    run(Command::new("apt-get").args(["download", "--quiet", package]).current_dir(folder.path()))?;
    for file in fs::read_dir(folder.path())? {
        run(Command::new("dpkg").arg("-x").arg(file?.path()).arg(root))?;
    }
    Ok(())
}

/// Runs a command, and returns what it prints.
pub(super) fn run(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()).into())
}
