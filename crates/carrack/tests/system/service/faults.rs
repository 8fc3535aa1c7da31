//! Faults of tasks by their places: workers tell them, the service finds where they come in bursts.

use serde_json::{Value, json};

use crate::support::Sandbox;
use crate::support::service::{Service, add_endpoints, object};

/// Copies a file of one byte so many times, each as a task of its own; the last of them has ended when this returns.
fn copies(sandbox: &Sandbox, from: &str, times: usize, more: &[&str]) {
    let ids: Vec<String> = (0..times)
        .map(|number| {
            let (source, destination) = (format!("@lab:/{from}/file"), format!("@archive:/{from}/{number}"));
            sandbox.ok(["task", "submit", &source, &destination].iter().chain(more)).stdout.trim().to_owned()
        })
        .collect();
    let ids = ids.iter().map(String::as_str);
    sandbox.run(["task", "wait", "--timeout", "120s"].into_iter().chain(ids));
}

#[test]
fn directory_where_files_are_not_what_they_should_be_is_named_and_the_test_of_its_endpoint_says_so() {
    let sandbox = Sandbox::new();
    for directory in ["good", "bad"] {
        sandbox.write(format!("lab/{directory}/file"), "x");
        std::fs::create_dir_all(sandbox.path("archive").join(directory)).unwrap();
    }
    let digest = blake3::hash(b"another").to_hex();
    let expected: String = (0..10).map(|number| format!("{digest}  {number}\n")).collect();
    let _service = Service::start(&sandbox, &[]);
    add_endpoints(&sandbox, &[("lab", "lab"), ("archive", "archive")]);
    copies(&sandbox, "good", 16, &[]);
    let quiet = object(&sandbox, &["service", "faults"]);
    assert_eq!((&quiet["tasks"], &quiet["faulty"], &quiet["bursts"]), (&16.into(), &0.into(), &json!([])), "{quiet:#}");
    sandbox.ok(["endpoint", "test", "lab"]);

    for number in 0..10 {
        let line = expected.lines().nth(number).unwrap();
        sandbox.write("sums", format!("{line}\n"));
        let (source, destination) = ("@lab:/bad/file".to_owned(), format!("@archive:/bad/{number}"));
        let words = ["task", "submit", &source, &destination, "--expect-digests", "sums", "--wait", "--timeout", "60s"];
        assert_ne!(sandbox.run(words).code, 0);
    }
    let found = object(&sandbox, &["service", "faults", "--since", "1h"]);
    let [burst] = &found["bursts"].as_array().unwrap()[..] else { panic!("{found:#}") };
    assert_eq!((&burst["place"]["kind"], &burst["faulty"], &burst["tasks"]), (&"path".into(), &10.into(), &10.into()));
    assert_eq!(burst["place"]["path"], sandbox.path("lab/bad").to_str().unwrap(), "{found:#}");
    assert_eq!((&burst["endpoints"], &burst["faulty_elsewhere"]), (&json!(["lab"]), &Value::from(0)), "{found:#}");
    assert_eq!(burst["codes"], json!([{ "code": "digest-mismatch", "tasks": 10 }]), "{found:#}");
    // The disk is the same for all: it is known, and does not stand out.
    let disks = found["places"].as_array().unwrap().iter().filter(|figures| figures["place"]["kind"] == "disk");
    let disks: Vec<(&Value, &Value)> = disks.map(|figures| (&figures["tasks"], &figures["faulty"])).collect();
    assert_eq!(disks, [(&Value::from(26), &Value::from(10))], "{found:#}");
    let told = sandbox.ok(["service", "faults"]).stdout;
    assert!(told.contains("10 of 26 tasks had a fault") && told.contains("burst: directory "), "{told}");
    assert!(sandbox.ok(["service", "faults", "--endpoint", "archive"]).stdout.contains("no place stands out"));
    // The endpoint can be used: the test says what tasks have met there, and passes.
    let test = sandbox.ok(["endpoint", "test", "lab"]).stdout;
    assert!(test.contains("note: faults: 10 of 10 tasks had a fault in @lab:/bad"), "{test}");
    sandbox.ok(["endpoint", "test", "archive"]);
}
