//! The integration tests, in one program: linked once, with one set of threads.

mod genomes;
