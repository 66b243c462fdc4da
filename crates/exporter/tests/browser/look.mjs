// Looks at the exporter's page as Chromium shows it, and prints what it found as JSON.
// usage: node look.mjs URL FOLDER_FOR_PICTURES FOLDER_OF_NODE_MODULES CHROMIUM

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [url, pictures, modules, executablePath] = process.argv.slice(2);
const require = createRequire(join(modules, 'package.json'));
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const sizes = [{ width: 1280, height: 800 }, { width: 375, height: 812 }];
const quiet = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];
const browser = await chromium.launch({ executablePath, args: quiet, chromiumSandbox: false });
const looks = [];

// axe needs scripts. Without them the test compares the document: it is the one that axe judged.
async function judged(page, javaScriptEnabled) {
  if (!javaScriptEnabled) return null;
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { violations, passes } = await globalThis.axe.run(document);
    const shown = ({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} (${node.failureSummary})`).join('; ')}`;
    return { violations: violations.map(shown), passes: passes.length };
  });
}

for (const viewport of sizes) {
  for (const colorScheme of ['light', 'dark']) {
    for (const javaScriptEnabled of [true, false]) {
      const context = await browser.newContext({ viewport, colorScheme, javaScriptEnabled });
      const page = await context.newPage();
      const requests = [];
      const said = [];
      page.on('request', (request) => requests.push(request.url()));
      page.on('console', (message) => said.push(message.text()));
      page.on('pageerror', (error) => said.push(String(error)));
      const answer = await page.goto(url, { waitUntil: 'networkidle' });
      const name = `${viewport.width}-${colorScheme}${javaScriptEnabled ? '' : '-no-script'}`;
      const look = { name, status: answer.status(), requests, said, title: await page.title() };
      await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
      look.background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      look.html = await page.content();
      look.closed = await judged(page, javaScriptEnabled);
      // Details open without a script, by the keyboard too.
      const details = page.locator('summary');
      look.details = await details.count();
      for (let at = 0; at < look.details; at += 1) {
        await details.nth(at).focus();
        await page.keyboard.press('Enter');
      }
      look.opened = await page.locator('details[open]').count();
      look.open = await judged(page, javaScriptEnabled);
      look.widest = await page.evaluate(() => document.documentElement.scrollWidth);
      look.width = viewport.width;
      await page.screenshot({ path: join(pictures, `${name}-open.png`), fullPage: true });
      looks.push(look);
      await context.close();
    }
  }
}
// For the README (CONTRIBUTING.md).
const picture = await browser.newPage({ viewport: { width: 1200, height: 780 }, colorScheme: 'light' });
await picture.goto(url);
await picture.screenshot({ path: join(pictures, 'readme.png') });
await browser.close();
console.log(JSON.stringify(looks));
