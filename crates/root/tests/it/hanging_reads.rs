//! Reads that hang, in a real file system: FUSE leaves a read unanswered, as a driver does whose device is gone.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use root::Root;
use root::patient::{Error, Patient};
use support::fuse::{self, Fault, Served};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_millis(200);
const DEADLINE: Duration = Duration::from_secs(5);

/// A folder with files `/f/0`, `/f/1`…, each of which holds its own name.
fn files(count: usize) -> (TempDir, Served) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("f")).unwrap();
    for number in 0..count {
        fs::write(folder.path().join(format!("f/{number}")), number.to_string()).unwrap();
    }
    let served = Served::new(folder.path());
    (folder, served)
}

fn patient(served: &Served) -> Patient<Vec<Result<Vec<u8>, root::Error>>> {
    Patient::new(served.path().to_owned(), PATIENCE, DEADLINE)
}

/// Waits until no thread has a file of the mount open: it can be unmounted then.
fn end<T>(patient: Patient<T>, served: &Served) {
    drop(patient);
    served.mend();
    let begun = Instant::now();
    let is_beneath =
        |entry: fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|to| to.starts_with(served.path()));
    while fs::read_dir("/proc/self/fd").unwrap().map_while(Result::ok).any(is_beneath) {
        served.release();
        assert!(begun.elapsed() < Duration::from_secs(5), "a thread reads on");
    }
}

fn read_all(count: usize) -> impl FnOnce(&Root) -> Vec<Result<Vec<u8>, root::Error>> + Clone + Send {
    move |root| (0..count).map(|number| root.read(format!("/f/{number}"), 64)).collect()
}

#[test]
fn real_fuse_a_read_that_hangs_costs_its_own_file_and_one_thread() {
    if !fuse::require() {
        return;
    }
    let (_folder, served) = files(3);
    served.fault("/f/1", Fault::Block);
    let mut patient = patient(&served);
    let begun = Instant::now();
    let read = patient.run(read_all(3)).unwrap();
    assert!(begun.elapsed() < PATIENCE * 3, "{:?}", begun.elapsed());
    assert_eq!((read[0].as_deref().unwrap(), read[2].as_deref().unwrap()), (&b"0"[..], &b"2"[..]));
    let error = read[1].as_ref().unwrap_err();
    assert!(matches!(error, root::Error::NoAnswer { .. }), "{error}");
    assert!(error.to_string().contains("/f/1 does not answer"), "{error}");
    // A thousand more runs ask it nothing and leave nobody behind.
    let begun = Instant::now();
    for _ in 0..1000 {
        assert!(patient.run(read_all(3)).unwrap()[1].is_err());
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!((patient.stuck(), served.hanging()), (1, 1));
    // The file answers again.
    served.mend();
    served.release();
    let begun = Instant::now();
    while patient.run(read_all(3)).unwrap()[1].is_err() {
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
    assert_eq!(patient.run(read_all(3)).unwrap()[1].as_deref().unwrap(), b"1");
    while patient.stuck() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
    end(patient, &served);
}

#[test]
fn real_fuse_a_folder_of_files_that_hang_is_found_out_in_one_run() {
    if !fuse::require() {
        return;
    }
    let (_folder, served) = files(21);
    (0..20).for_each(|number| served.fault(&format!("/f/{number}"), Fault::Block));
    let mut patient = patient(&served);
    let read = patient.run(read_all(21)).unwrap();
    assert!(read[..20].iter().all(Result::is_err));
    assert_eq!(read[20].as_deref().unwrap(), b"20");
    assert_eq!((patient.stuck(), served.hanging()), (20, 20));
    end(patient, &served);
}

#[test]
fn real_fuse_threads_are_bounded_where_everything_hangs() {
    if !fuse::require() {
        return;
    }
    let (_folder, served) = files(200);
    served.fault_everywhere(Fault::Block);
    let mut patient: Patient<_> = Patient::new(served.path().to_owned(), Duration::from_millis(20), DEADLINE);
    let mut error = None;
    for _ in 0..50 {
        error = Some(patient.run(read_all(200)).unwrap_err());
    }
    let error = error.unwrap();
    assert!(matches!(error, Error::TooMany { .. }), "{error}");
    assert!(error.to_string().starts_with("128 reads do not come back, the last of /f/"), "{error}");
    assert_eq!(patient.stuck(), 128);
    end(patient, &served);
}

#[test]
fn real_fuse_a_run_of_slow_reads_ends_at_its_deadline_and_its_thread_soon_after() {
    if !fuse::require() {
        return;
    }
    let (_folder, served) = files(100);
    let mut patient: Patient<_> = Patient::new(served.path().to_owned(), PATIENCE, Duration::from_secs(1));
    // Opens the Root, which reads no file: on a busy machine and with the delay, that alone could last to the deadline.
    assert_eq!(patient.run(read_all(1)).unwrap()[0].as_deref().unwrap(), b"0");
    served.fault_everywhere(Fault::Delay(Duration::from_millis(50)));
    let begun = Instant::now();
    let error = patient.run(read_all(100)).unwrap_err().to_string();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert!(
        error.starts_with("reading took longer than 1 s; the read that was waiting then: /f/"),
        "{error}"
    );
    let begun = Instant::now();
    while patient.stuck() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(1), "it reads on");
    }
    served.mend();
    assert_eq!(patient.run(read_all(1)).unwrap()[0].as_deref().unwrap(), b"0");
    end(patient, &served);
}

#[test]
fn one_thread_serves_all_runs_where_nothing_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let opened = Arc::new(AtomicUsize::new(0));
    let mut patient = Patient::new(folder.path().to_owned(), PATIENCE, DEADLINE);
    let mut last = None;
    for _ in 0..100 {
        let opened = Arc::clone(&opened);
        let thread = patient
            .run(move |_: &Root| {
                opened.fetch_add(1, Ordering::SeqCst);
                std::thread::current().id()
            })
            .unwrap();
        assert!(last.is_none_or(|last| last == thread));
        last = Some(thread);
    }
    assert_eq!(opened.load(Ordering::SeqCst), 100);
}

#[test]
fn a_root_that_is_not_there_is_an_error_each_time() {
    let mut patient = Patient::new(Path::new("/nowhere/at/all").to_owned(), PATIENCE, DEADLINE);
    for _ in 0..2 {
        let error = patient.run(|_: &Root| ()).unwrap_err().to_string();
        assert_eq!(error, "cannot open /nowhere/at/all: No such file or directory");
    }
    assert_eq!(patient.stuck(), 0);
}
