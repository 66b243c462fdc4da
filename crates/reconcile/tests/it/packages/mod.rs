//! Packages and archives, by real apt and dpkg.

mod real_dpkg;
mod real_packages;
mod real_packages_faults;
mod real_packages_killed;
mod real_packages_stay;
mod real_unpacked;
mod real_unpacked_killed;
mod worker;
