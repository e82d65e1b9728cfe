//! The page in a real browser: nothing complained of, nothing loaded, nothing too wide, and every
//! number the one of the object.

use super::support::chromium::Chromium;
use super::{Desk, synthetic};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;

/// A page of one run, and of two, with their objects.
fn pages() -> (Desk, [(&'static str, Value); 2]) {
    let desk = Desk::new();
    desk.write("a.jsonl", &synthetic::records(3000, 1).collect::<Vec<_>>());
    desk.write("b.jsonl", &synthetic::records(500, 2).collect::<Vec<_>>());
    let one = desk.json(&["a.jsonl", "--html", "one.html"]);
    let two = desk.json(&["a.jsonl", "b.jsonl", "--html", "two.html"]);
    (desk, [("one.html", one), ("two.html", two)])
}

/// The places of all numbers of an object, with the numbers.
fn numbers(value: &Value, pointer: &str, found: &mut BTreeMap<String, f64>) {
    let part = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Number(number) => {
            found.insert(pointer.to_owned(), number.as_f64().unwrap());
        }
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                numbers(value, &format!("{pointer}/{at}"), found);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                numbers(value, &format!("{pointer}/{}", part(name)), found);
            }
        }
        _ => {}
    }
}

#[test]
fn every_number_of_the_object_stands_where_it_belongs() {
    let Some(mut browser) = Chromium::start() else { return };
    let (desk, pages) = pages();
    for (page, object) in &pages {
        browser.screen(1280, false);
        browser.open(&desk.path(page));
        let listed = browser.evaluate(
            "[...document.querySelectorAll('data[data-json]')].map(data => [data.dataset.json, \
             data.value, data.textContent])",
        );
        let mut wanted = BTreeMap::new();
        numbers(object, "", &mut wanted);
        let mut seen = BTreeSet::new();
        for entry in listed.as_array().unwrap() {
            let [pointer, value, shown] = [0, 1, 2].map(|at| entry[at].as_str().unwrap());
            let value: f64 = value.parse().unwrap();
            assert_eq!(wanted.get(pointer), Some(&value), "{page}: {pointer} shows {shown}");
            assert!(!shown.trim().is_empty(), "{page}: {pointer}");
            seen.insert(pointer.to_owned());
        }
        // Times of slow URLs stand once, with the URL.
        let missing: Vec<&String> = wanted.keys().filter(|at| !seen.contains(*at)).collect();
        assert!(missing.is_empty(), "{page} lacks {missing:#?}");
        println!("{page}: {} numbers, {} places", wanted.len(), listed.as_array().unwrap().len());
    }
}

#[test]
fn nothing_is_complained_of_and_nothing_loaded() {
    let Some(mut browser) = Chromium::start() else { return };
    let (desk, pages) = pages();
    for (page, _) in &pages {
        let path = desk.path(page);
        let mut texts = Vec::new();
        for scripts in [true, false] {
            browser.scripts(scripts);
            browser.screen(1280, false);
            browser.open(&path);
            texts.push(browser.evaluate("document.querySelector('main').textContent"));
            assert_eq!(browser.complaints(), [&json!(null); 0], "{page}, scripts {scripts}");
            assert_eq!(browser.requests(), [format!("file://{}", path.display())]);
            let sortable = browser.evaluate("document.querySelectorAll('th button').length");
            assert_eq!(sortable == 0, !scripts, "{page}: {sortable}");
        }
        assert_eq!(texts[0], texts[1], "{page} reads the same without its script");
        browser.scripts(true);
    }
}

#[test]
fn no_screen_is_too_narrow_and_no_mode_too_dark() {
    let Some(mut browser) = Chromium::start() else { return };
    let (desk, pages) = pages();
    for (page, _) in &pages {
        let mut looks = BTreeSet::new();
        for (width, dark) in [(360, false), (360, true), (1280, false), (1280, true)] {
            browser.screen(width, dark);
            browser.open(&desk.path(page));
            browser
                .evaluate("document.querySelectorAll('details').forEach(one => one.open = true)");
            let wide = browser.evaluate("document.documentElement.scrollWidth");
            assert!(wide.as_u64().unwrap() <= u64::from(width), "{page} at {width} is {wide} wide");
            let shown = browser.evaluate(
                "[...document.querySelectorAll('.plot > svg')]\
                 .filter(svg => svg.getBoundingClientRect().width > 0)\
                 .map(svg => [svg.classList[0], svg.getBoundingClientRect().right])",
            );
            let form = if width < 600 { "narrow" } else { "wide" };
            let shown = shown.as_array().unwrap();
            assert!(shown.len() >= 9, "{page}: {} drawings", shown.len());
            for svg in shown {
                assert_eq!(svg[0], form, "{page} at {width}");
                assert!(svg[1].as_f64().unwrap() <= f64::from(width), "{page} at {width}: {svg}");
            }
            let outside = browser.evaluate(OUTSIDE);
            assert_eq!(outside, json!([]), "{page} at {width}: letters beyond their drawing");
            let pale = browser.evaluate(PALE);
            assert_eq!(pale, json!([]), "{page} at {width}, dark {dark}: too little contrast");
            let colours = browser.evaluate("getComputedStyle(document.body).backgroundColor");
            let expected = if dark { "rgb(18, 22, 27)" } else { "rgb(255, 255, 255)" };
            assert_eq!(colours, expected);
            browser
                .evaluate("document.querySelectorAll('details').forEach(one => one.open = false)");
            let high = browser.evaluate("document.documentElement.scrollHeight").as_u64().unwrap();
            let picture = browser.picture(width, u32::try_from(high).unwrap().min(12_000));
            assert!(picture.len() > 20_000, "{page} at {width} is empty");
            keep(&format!("{page}-{width}-{}", if dark { "dark" } else { "light" }), &picture);
            looks.insert(picture);
        }
        assert_eq!(looks.len(), 4, "{page} looks the same on two screens");
    }
}

/// Letters of drawings that lie outside of them.
const OUTSIDE: &str = "
[...document.querySelectorAll('.plot > svg')].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  if (box.width === 0) return [];
  return [...svg.querySelectorAll('text')].filter(text => {
    const letters = text.getBoundingClientRect();
    return letters.left < box.left - 1 || letters.right > box.right + 1
      || letters.top < box.top - 2 || letters.bottom > box.bottom + 2;
  }).map(text => `${svg.getAttribute('aria-labelledby')}: ${text.textContent}`);
})";

/// Texts whose contrast is below what WCAG asks for at AA.
const PALE: &str = "
(() => {
  const channels = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = colour => {
    const [r, g, b] = channels(colour).map(part => {
      part /= 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const page = light(getComputedStyle(document.body).backgroundColor);
  const found = new Set();
  for (const one of document.querySelectorAll('body *')) {
    const own = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!own || ['SCRIPT', 'STYLE', 'title', 'desc'].includes(one.tagName)) continue;
    const style = getComputedStyle(one);
    const text = light(one instanceof SVGElement ? style.fill : style.color);
    const contrast = (Math.max(text, page) + 0.05) / (Math.min(text, page) + 0.05);
    if (contrast < 4.5) found.add(`${one.tagName} ${one.className} ${contrast}`);
  }
  return [...found];
})()";

#[test]
fn a_screen_reader_meets_titles_heads_and_texts() {
    let Some(mut browser) = Chromium::start() else { return };
    let (desk, pages) = pages();
    for (page, _) in &pages {
        for width in [360, 1280] {
            browser.screen(width, false);
            browser.open(&desk.path(page));
            let nodes = browser.nodes();
            let of = |role: &str| nodes.iter().filter(|node| node.0 == role).collect::<Vec<_>>();
            // What Chromium calls an SVG with the role of an image differs by version.
            let drawings = [of("image"), of("img"), of("SvgRoot")].concat();
            let runs = if *page == "one.html" { 1 } else { 2 };
            assert!(drawings.len() >= 9 * runs, "{page}: {} drawings", drawings.len());
            for (_, name, text) in &drawings {
                // Title and sentence together name it.
                assert!(name.len() + text.len() > 25, "{page}: {name:?} {text:?}");
            }
            for role in ["main", "navigation", "columnheader", "rowheader", "figure"] {
                assert!(!of(role).is_empty(), "{page} has no {role}");
            }
            assert!(
                of("table").iter().all(|table| !table.1.is_empty()),
                "{page}: {:?}",
                of("table")
            );
            assert!(of("figure").iter().all(|figure| !figure.1.is_empty()));
        }
        let structure = browser.evaluate(
            "[document.documentElement.lang, document.title,
              [...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(head => +head.tagName[1]),
              [...document.querySelectorAll('[id]')].map(one => one.id),
              [...document.querySelectorAll('[aria-labelledby]')]
                .flatMap(one => one.getAttribute('aria-labelledby').split(' '))
                .filter(id => !document.getElementById(id)),
              [...document.querySelectorAll('table')]
                .filter(table => !table.caption || !table.tHead
                  || [...table.querySelectorAll('th')].some(head => !head.scope)).length,
              [...document.querySelectorAll('.scroll')]
                .filter(box => box.tabIndex !== 0 || box.getAttribute('role') !== 'region').length,
              [...document.querySelectorAll('nav a')]
                .filter(link => !document.querySelector(link.getAttribute('href'))).length]",
        );
        assert_eq!(structure[0], "en");
        assert!(structure[1].as_str().unwrap().contains("a.jsonl"));
        let heads: Vec<u64> =
            structure[2].as_array().unwrap().iter().map(|head| head.as_u64().unwrap()).collect();
        assert_eq!(heads.iter().filter(|head| **head == 1).count(), 1);
        assert!(heads.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{page}: {heads:?}");
        let ids: Vec<&str> =
            structure[3].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        let distinct: BTreeSet<&&str> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len(), "{page}: an id stands twice");
        assert_eq!(structure[4], json!([]), "{page}: labels that lead nowhere");
        assert_eq!([&structure[5], &structure[6], &structure[7]], [&json!(0); 3], "{page}");
    }
}

#[test]
fn tables_are_sorted_by_their_heads() {
    let Some(mut browser) = Chromium::start() else { return };
    let (desk, pages) = pages();
    browser.screen(1280, false);
    browser.open(&desk.path(pages[0].0));
    let column = "[...document.querySelectorAll('#hosts-table tbody tr')]\
                  .map(row => Number(row.cells[5].querySelector('data').value))";
    let names = "[...document.querySelectorAll('#hosts-table tbody tr')]\
                 .map(row => row.cells[0].textContent)";
    let click = |at: u32| {
        let button = "document.querySelectorAll('#hosts-table thead button')";
        format!("{button}[{at}].click(), {button}[{at}].closest('th').getAttribute('aria-sort')")
    };
    let floats = |value: &Value| -> Vec<f64> {
        value.as_array().unwrap().iter().map(|one| one.as_f64().unwrap()).collect()
    };
    assert_eq!(browser.evaluate(&click(5)), "descending");
    let falling = floats(&browser.evaluate(column));
    assert!(falling.is_sorted_by(|a, b| a >= b) && falling.len() > 20, "{falling:?}");
    assert_eq!(browser.evaluate(&click(5)), "ascending");
    assert!(floats(&browser.evaluate(column)).is_sorted());
    assert_eq!(browser.evaluate(&click(0)), "ascending");
    let sorted = browser.evaluate(names);
    let sorted: Vec<&str> =
        sorted.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    // Numbers in names count as numbers.
    assert_eq!(&sorted[..3], ["shop0.example", "shop1.example", "shop2.example"]);
    let marked = "document.querySelectorAll('#hosts-table [aria-sort]').length";
    assert_eq!(browser.evaluate(marked), 1);
}

/// Keeps a picture for people to look at, where `LONGHAUL_PICTURES` names a folder.
fn keep(name: &str, picture: &str) {
    use base64::Engine as _;
    let Some(folder) = env::var_os("LONGHAUL_PICTURES") else { return };
    let bytes = base64::engine::general_purpose::STANDARD.decode(picture).unwrap();
    fs::write(std::path::Path::new(&folder).join(format!("{name}.png")), bytes).unwrap();
}
