//! The tests of the command, in one program: linked once, with one set of threads.

mod bench;
mod command_line;
mod crash;
mod defects;
mod field;
mod generate;
mod genome_reports;
mod init_from;
#[cfg(feature = "link")]
mod link;
#[cfg(feature = "link")]
mod live;
mod messages;
#[cfg(target_os = "linux")]
mod mujoco;
mod plant;
mod policy;
mod program;
mod receipts;
mod recordings;
mod replay;
mod results;
mod rig;
#[cfg(all(feature = "link", unix))]
mod robots_page;
mod spiking;
mod train;
