//! Groups that no file names: the machine's own getent answers for its name services.

use std::fs;

use host::groups::Groups;
use reconcile::command::Programs;
use root::Root;
use support::detect::scratch;
use support::real;

#[test]
fn real_getent_is_asked_for_what_no_file_names_and_for_nothing_else() {
    if !real::require(&["getent"]) {
        return;
    }
    let dir = scratch();
    fs::create_dir_all(dir.path().join("etc")).unwrap();
    fs::write(dir.path().join("etc/group"), "render:x:992:\n").unwrap();
    let root = Root::open(dir.path()).unwrap();
    let programs = Programs::in_folders("/usr/bin:/bin");
    let asked = |programs: Option<&Programs>| Groups::read(&root).asking(programs, &[0, 4_000_000_000]);
    let groups = asked(Some(&programs));
    assert_eq!((groups.name(0), groups.source_elsewhere("root")), (Some("root"), Some("getent")));
    assert_eq!(
        (groups.gid("render"), groups.name(4_000_000_000)),
        (Some(992), None),
        "a file's number stays"
    );
    // Beneath a directory no command is run, and without getent nothing is known.
    let none = Programs::in_folders(dir.path());
    for programs in [None, Some(&none)] {
        assert_eq!(asked(programs).name(0), None);
    }
}
