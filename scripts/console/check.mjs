// Checks the console at an address in Chromium; scripts/console.sh starts both.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const load = createRequire(process.env.TOOLS + '/');
const { chromium } = load('playwright-core');
const axe = readFileSync(load.resolve('axe-core/axe.min.js'), 'utf8');
const [address, ...flags] = process.argv.slice(2);
const pictures = flags.includes('--pictures');

const album = 'pk=ALBUM%231e0927b1-cc70-489b-a703-1049a5e31d1e&sk=METADATA&table=gallery';
const pages = {
	model: '/console/gallery',
	rows: '/console/gallery/rows?entity=Album',
	row: `/console/gallery/row?${album}`,
	why: `/console/gallery/why?${album}&attr=mediaCount`,
	history: `/console/gallery/why?${album}&attr=mediaCount&history=recordings#history`,
	queries: '/console/gallery/queries',
	query: '/console/gallery/query/search-albums?q=market',
	mistake: '/console/gallery/query/album?ask=1',
	tail: '/console/gallery/tail',
	dead: '/console/gallery/dead',
	letter: '/console/gallery/dead',
	discard: '/console/gallery/dead',
	health: '/console/gallery/health',
	try: '/console/gallery/try',
	new: '/console/gallery/new/Album',
	refused: '/console/gallery/new/Album',
	nothing: '/console/nothing',
};
// The pages of a model without any row, of another process.
for (const path of ['', '/rows', '/rows?entity=Item', '/row?table=WardrobeTable&pk=ITEM%23gone&sk=METADATA', '/queries', '/tail', '/dead', '/health']) {
	pages['no rows' + path] = process.env.EMPTY + '/console/wardrobe' + path;
}
// What is done on a page before it is looked at.
const letter = (page) => page.locator('tbody a').first().click();
const prepare = {
	letter,
	discard: async (page) => {
		await letter(page);
		await page.getByRole('button', { name: 'Discard' }).click();
		await page.getByRole('alert').waitFor();
	},
	refused: async (page) => {
		await page.getByRole('button', { name: 'Create' }).click();
		await page.locator('[aria-invalid]').first().waitFor();
	},
};
// Pages that docs/guide/console.md shows, with the height of each picture.
const shown = { model: 700, rows: 600, row: 900, why: 600, history: 600, query: 600, tail: 600, health: 700 };
const widths = [375, 1024, 1600];

let failures = 0;
function check(ok, what) {
	if (ok) return;
	failures++;
	console.error(what);
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });

// open returns a page on which every dialog, error and blocked script is a failure.
async function open(options) {
	const context = await browser.newContext({ bypassCSP: false, ...options });
	const page = await context.newPage();
	page.on('dialog', (d) => { check(false, `${page.url()}: a script of a row ran: ${d.message()}`); d.dismiss(); });
	page.on('pageerror', (e) => check(false, `${page.url()}: ${e}`));
	page.on('console', (m) => {
		const missing = /status of 4(00|04|22)/.test(m.text()); // pages of mistakes, which are asked for
		if (m.type() === 'error' && !missing) check(false, `${page.url()}: ${m.text()}`);
	});
	return page;
}

// Each page at each width in each colour scheme: no violation, and nothing wider than the window. All rules
// run once for a page. What depends on the layout runs again at each width, and colours in dark.
const layout = ['color-contrast', 'target-size', 'scrollable-region-focusable', 'link-in-text-block', 'meta-viewport'];
async function looks() {
	let n = 0;
	const todo = Object.entries(pages);
	const some = async () => {
		const page = await open({});
		for (let next = todo.shift(); next; next = todo.shift()) {
			const [name, path] = next;
			await page.emulateMedia({ colorScheme: 'light' });
			const answer = await page.goto(path.startsWith('/') ? address + path : path);
			check(answer.status() === (name === 'nothing' ? 404 : 200), `${name}: ${answer.status()}`);
			await prepare[name]?.(page);
			await page.evaluate(axe); // by the debugger, which no policy holds up
			for (const colorScheme of ['light', 'dark']) {
				await page.emulateMedia({ colorScheme });
				for (const width of widths) {
					await page.setViewportSize({ width, height: shown[name] ?? 800 });
					const where = `${name} at ${width}, ${colorScheme}`;
					const rules = colorScheme === 'dark' ? ['color-contrast', 'link-in-text-block'] : layout;
					const first = colorScheme === 'light' && width === widths[0];
					const seen = await page.evaluate(async (only) => ({
						over: document.documentElement.scrollWidth - innerWidth,
						violations: (await axe.run({ resultTypes: ['violations'], ...only })).violations,
					}), first ? {} : { runOnly: { type: 'rule', values: rules } });
					check(seen.over <= 0, `${where}: ${seen.over} pixels wider than the window`);
					for (const v of seen.violations) check(false, `${where}: ${v.id}: ${v.help}: ${v.nodes.map((x) => x.html).slice(0, 3).join('  ')}`);
					n++;
					if (pictures && shown[name] && width === 1024 && colorScheme === 'light') {
						await page.screenshot({ path: `docs/guide/console-${name}.png` });
					}
				}
			}
		}
		await page.context().close();
	};
	await Promise.all(Array.from({ length: 3 }, some));
	return n;
}

// By keyboard alone: past the navigation, to the rows, to one row, to why it has its count.
async function keyboard() {
	const page = await open({ javaScriptEnabled: true });
	const follow = async (text) => {
		for (let i = 0; i < 80; i++) {
			await page.keyboard.press('Tab');
			const at = await page.evaluate(() => {
				const e = document.activeElement, s = getComputedStyle(e);
				return { text: e.textContent.trim(), link: e.tagName === 'A', seen: s.outlineStyle !== 'none' };
			});
			if (at.link && at.text.startsWith(text)) {
				check(at.seen, `${page.url()}: nobody sees that ${text} has the focus`);
				await Promise.all([page.waitForLoadState(), page.keyboard.press('Enter')]);
				return;
			}
		}
		check(false, `${page.url()}: no way to ${text} by keyboard`);
	};
	await page.goto(address + pages.model);
	await follow('Skip to content');
	check(await page.evaluate(() => document.activeElement.id === 'main'), 'the first link does not lead past the navigation');
	await page.goto(address + pages.model);
	await follow('Rows');
	await page.waitForURL('**/rows');
	await page.goto(address + pages.row);
	await follow('why');
	await page.waitForURL('**/why?*');
	await page.goto(address + pages.new); // a form is filled in and sent without a mouse
	const fields = await page.locator('form.new input:not([type=hidden]), form.new select').count();
	await page.locator('form.new input:not([type=hidden])').first().focus();
	for (let i = 0; i < fields; i++) await page.keyboard.press('Tab');
	check(await page.evaluate(() => document.activeElement.textContent) === 'Create', 'the first button does not come after the fields');
	await page.keyboard.press('Enter');
	await page.locator('[aria-invalid]').first().waitFor();
	await page.context().close();
}

async function putAlbum(id, title) {
	const body = { id, title, isPublic: true, createdAt: '2026-01-31T12:00:00Z', createdBy: id, tags: [id] };
	const answer = await fetch(address + '/v1/gallery/Album', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
	check(answer.status === 201, `album ${id}: ${answer.status} ${await answer.text()}`);
}

// A tail shows records as they are applied, none while it is paused, and all of them afterwards. Without
// JavaScript the page has the last ones.
async function live() {
	const page = await open({});
	await page.goto(address + pages.tail);
	await page.getByText('Records appear').waitFor();
	await putAlbum('tail-1', 'First of the tail');
	await page.getByText('First of the tail').first().waitFor();
	await page.getByRole('button', { name: 'Pause' }).click();
	await putAlbum('tail-2', 'While it is paused');
	await page.waitForTimeout(500);
	check(await page.getByText('While it is paused').count() === 0, 'a paused tail goes on');
	await page.getByRole('button', { name: 'Go on' }).click();
	await page.getByText('While it is paused').first().waitFor();
	await page.context().close();
	const plain = await open({ javaScriptEnabled: false });
	await plain.goto(address + pages.tail);
	check(await plain.getByText('While it is paused').count() > 0, 'no records without JavaScript');
	check(!await plain.locator('[data-pause]').isVisible(), 'a button that does nothing without JavaScript');
	await plain.context().close();
}

// A search answers as one types, with no button; without JavaScript the button does it.
async function typing() {
	const page = await open({});
	await page.goto(address + '/console/gallery/query/search-albums');
	await page.getByLabel('q', { exact: true }).pressSequentially('market', { delay: 20 });
	await page.locator('[data-answer] pre', { hasText: 'q=market' }).waitFor(); // the answer to the last key
	await page.waitForURL('**q=market**');
	check(await page.locator('[data-answer] tbody tr').count() > 0, 'nothing is found as one types');
	await page.setViewportSize({ width: 1024, height: 600 });
	const title = await page.locator('[data-answer] th', { hasText: /^title$/ }).boundingBox();
	check(title.x + title.width <= 1024, 'what is searched is out of sight at 1,024 pixels');
	await page.context().close();
	const plain = await open({ javaScriptEnabled: false });
	await plain.goto(address + '/console/gallery/query/search-albums');
	await plain.getByLabel('q', { exact: true }).fill('market');
	await plain.getByRole('button', { name: 'Search' }).click();
	await plain.locator('[data-answer] tbody tr').first().waitFor();
	await plain.context().close();
}

// What a page would do that had markup of a row in it: the policy of the page stops all of it.
async function policy() {
	const context = await browser.newContext(), page = await context.newPage(); // errors are expected here
	const asked = [];
	page.on('requestfinished', (r) => asked.push(r.url())); // what a policy stops fails
	await page.goto(address + pages.rows);
	const before = asked.length;
	const did = await page.evaluate(async () => {
		const box = document.createElement('div');
		box.innerHTML = '<p id="styled" style="margin-left: 77px">x</p><img src="/console/x.png" onerror="window.ran = true"><style>#styled { margin-top: 78px }</style><form action="https://example.invalid/"></form>';
		document.body.append(box);
		const script = document.createElement('script');
		script.textContent = 'window.ran = true';
		document.body.append(script);
		box.querySelector('form').submit();
		try { await fetch('https://example.invalid/'); } catch { /* as it is to be */ }
		await new Promise((done) => setTimeout(done, 300));
		const is = getComputedStyle(document.querySelector('#styled'));
		return { ran: window.ran === true, styled: is.marginLeft === '77px' || is.marginTop === '78px' };
	});
	check(!did.ran, 'the policy lets an inline script run');
	check(!did.styled, 'the policy lets a foreign style apply');
	check(asked.length === before, `the policy lets a page ask for ${asked.slice(before)}`);
	check(page.url() === address + pages.rows, 'the policy lets a form go elsewhere');
	await context.close();
}

// Rows with markup, disorder and long texts: every page of theirs is walked.
async function hostile() {
	const texts = ['<script>alert(1)</script>', '"><img src=x onerror=alert(2)>', "'-alert(3)-'", 'javascript:alert(4)', '</title><svg onload=alert(5)>', 'a\u202eb\u2066c', 'ü'.repeat(90000)];
	const watching = await open({}); // a tail meets them as they are written
	await watching.goto(address + pages.tail);
	await watching.getByText('Records appear').waitFor();
	for (const text of texts) await putAlbum(text.slice(0, 60), text);
	await watching.getByText(texts[0]).first().waitFor();
	await watching.waitForTimeout(500);
	const foreign = await watching.evaluate(() => document.querySelectorAll('script:not([src="/console/console.js"]), img, iframe, object, [onerror], [onload], [style], a[href^="javascript:"]').length);
	check(foreign === 0, `${foreign} elements in the tail that the console does not write`);
	await watching.context().close();
	const todo = [pages.tail, pages.dead, '/console/gallery/query/search-albums?q=alert', '/console/gallery/query/albums', '/console/gallery/rows?table=gallery&index=GSI1&pk=ALBUM'], seen = new Set();
	for (const text of texts) todo.push('/console/gallery/row?table=gallery&sk=METADATA&pk=' + encodeURIComponent('ALBUM#' + text.slice(0, 60)));
	const some = async () => {
		const page = await open({});
		for (let path = todo.shift(); path && seen.size < 60; path = todo.shift()) {
			if (seen.has(path) || path.includes('row.json')) continue;
			seen.add(path);
			const answer = await page.goto(address + path);
			check(answer.status() === 200, `${path}: ${answer.status()}`);
			todo.push(...(await harmless(page, path)).filter((l) => l.startsWith('/console/')));
		}
		await page.context().close();
	};
	await Promise.all(Array.from({ length: 3 }, some));
	return seen.size + await hostileForms(texts);
}

// harmless checks that a page has no element that the console does not write, and returns its links.
async function harmless(page, what) {
	const at = await page.evaluate(() => ({
		foreign: document.querySelectorAll('script:not([src="/console/console.js"]), img, iframe, object, [onerror], [onload], [style], a[href^="javascript:"]').length,
		over: document.documentElement.scrollWidth - innerWidth,
		links: [...document.querySelectorAll('main a')].map((a) => a.getAttribute('href')),
	}));
	check(at.foreign === 0, `${what}: ${at.foreign} elements that the console does not write`);
	check(at.over <= 0, `${what}: ${at.over} pixels wider than the window`);
	return at.links;
}

// The same texts in every field of a form, which refuses some of them: the answer has them again. A dead
// letter with markup is shown, and asked about.
async function hostileForms(texts) {
	const page = await open({});
	for (const text of [...texts, 'x'.repeat(400000)]) {
		await page.goto(address + pages.new);
		await page.evaluate((text) => document.querySelectorAll('main input:not([type=hidden])').forEach((e) => {
			if (text.length < 1000 || e.name === 'field.title') e.value = text; // a form has at most 1 MB
		}), text);
		await page.getByRole('button', { name: 'Create' }).click();
		await page.locator('.notice, [aria-invalid]').first().waitFor();
		await harmless(page, `a form with ${text.slice(0, 40)}`);
	}
	await page.goto(address + pages.dead);
	await harmless(page, 'dead letters');
	await prepare.discard(page);
	check((await page.content()).includes('&lt;script&gt;'), 'the dead letter has no markup to be afraid of');
	await harmless(page, 'a dead letter that may be discarded');
	await page.getByRole('link', { name: 'Keep it' }).click();
	await page.goto(address + pages.try);
	await harmless(page, 'the tools');
	await page.context().close();
	return texts.length + 4;
}

// First pages, from nothing to loaded, in a browser that has nothing of the console yet: the medians of seven, in
// milliseconds. work is the time that the page's main thread was at work, which others that use the machine hardly
// change; load is by the clock. A page is to be there within 100 ms, so work must be less.
async function speed() {
	const out = {};
	const median = (all) => all.sort((a, b) => a - b)[all.length >> 1];
	for (const name of ['model', 'rows']) {
		const work = [], load = [];
		for (let i = 0; i < 7; i++) {
			const page = await open({});
			const debug = await page.context().newCDPSession(page);
			await debug.send('Performance.enable', { timeDomain: 'threadTicks' });
			await page.goto(address + pages[name]);
			load.push(await page.evaluate(() => performance.getEntriesByType('navigation')[0].loadEventEnd));
			const { metrics } = await debug.send('Performance.getMetrics');
			work.push(1000 * metrics.find((m) => m.name === 'TaskDuration').value);
			await page.context().close();
		}
		out[name] = { work: Math.round(median(work)), load: Math.round(median(load)) };
		check(out[name].work < 100, `the page ${name} is ${out[name].work} ms of work for the browser`);
	}
	return out;
}

const spent = {};
async function timed(what) {
	const from = Date.now(), out = await what();
	spent[what.name] = Math.round((Date.now() - from) / 100) / 10;
	return out;
}
await timed(live); // first: then the tail has records to look at
const n = await timed(looks);
await Promise.all([timed(keyboard), timed(typing)]);
const fast = await timed(speed);
const walked = await timed(hostile);
await timed(policy);
await browser.close();
if (failures > 0) {
	console.error(`${failures} failures`);
	process.exit(1);
}
console.log(`seconds: ${JSON.stringify(spent)}`);
console.log(`first pages, ms: ${JSON.stringify(fast)}`);
console.log(`=> ${n} views without a violation, ${walked} pages of hostile rows`);
