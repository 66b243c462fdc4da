//! Explains what an error of AMD's software or the kernel means, and what to do on this machine.
//!
//! `codes` knows numbers: the source's 1 to 8 and those of HIP, HSA and AMD SMI. `advice` turns what [`kernel_log`]
//! finds into what it means for this machine, which `here` has read. `journal` reads the messages that journald keeps;
//! `formats` knows logs that are no text, `utf16` reads text of Windows' programs, and `colours` leaves out a
//! terminal's. `matches` are what was found; `groups` puts equal ones together for people.

pub mod advice;
pub mod codes;
pub mod colours;
pub mod formats;
pub mod groups;
pub mod here;
pub mod journal;
pub mod matches;
pub mod utf16;
