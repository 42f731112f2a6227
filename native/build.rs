//! Digests the sources, so that stored programs of another build are told apart.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut digest = DefaultHasher::new();
    for name in ["Cargo.lock", "Cargo.toml", "build.rs", "src"] {
        println!("cargo::rerun-if-changed={name}");
        add(&root, Path::new(name), &mut digest)?;
    }
    println!("cargo::rustc-env=POLICYENG_NATIVE_BUILD={:016x}", digest.finish());
    Ok(())
}

fn add(root: &Path, name: &Path, digest: &mut DefaultHasher) -> io::Result<()> {
    if root.join(name).is_dir() {
        let entries = fs::read_dir(root.join(name))?.map(|entry| Ok(name.join(entry?.file_name())));
        let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
        entries.sort();
        return entries.iter().try_for_each(|entry| add(root, entry, digest));
    }
    (name, fs::read(root.join(name))?).hash(digest);
    Ok(())
}
