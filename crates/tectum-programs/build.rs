//! Sets the crate's own revision: a hash of its sources.

fn main() {
    source_revision::set("TECTUM_REVISION");
}
