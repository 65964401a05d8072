// Writes products and reviews with the AWS SDK, and reads what weir derives from them: from its own rows,
// and from weir's queries with a client that was generated from /openapi.json.
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DeleteCommand, DynamoDBDocumentClient, GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import createClient from "openapi-fetch";
import type { paths } from "./weir.js";

const table = "reviews";
const db = DynamoDBDocumentClient.from(new DynamoDBClient({}));
const weir = createClient<paths>({ baseUrl: process.env.WEIR ?? "http://127.0.0.1:8480" });

async function product(id: string, name: string) {
  await db.send(new PutCommand({ TableName: table, Item: { PK: `PRODUCT#${id}`, SK: "ABOUT", kind: "product", id, name } }));
}

const review = (id: string, user: string) => ({ PK: `PRODUCT#${id}`, SK: `REVIEW#${user}` });

async function rate(id: string, user: string, stars: number, at: string) {
  await db.send(new PutCommand({ TableName: table, Item: { ...review(id, user), kind: "review", product: id, user, stars, at } }));
}

/** Reads a product, strongly, until weir has counted so many reviews. */
async function counted(id: string, reviews: number) {
  for (const end = Date.now() + 30_000; ; await new Promise((r) => setTimeout(r, 100))) {
    const { Item } = await db.send(new GetCommand({ TableName: table, Key: { PK: `PRODUCT#${id}`, SK: "ABOUT" }, ConsistentRead: true }));
    if (Item?.reviews === reviews) return Item;
    if (Date.now() > end) throw new Error(`the product shows ${Item?.reviews} reviews, not ${reviews}`);
  }
}

await product("1", "Tea pot");
await rate("1", "ida", 5, "2025-03-01T10:00:00Z");
await rate("1", "bo", 4, "2025-03-02T09:30:00Z");
let row = await counted("1", 2);
console.log(`${row.name}: ${row.reviews} reviews, ${row.stars} stars`);

await db.send(new DeleteCommand({ TableName: table, Key: review("1", "bo") }));
row = await counted("1", 1);
console.log(`${row.name}: ${row.reviews} review, ${row.stars} stars`);

const { data, error } = await weir.GET("/v1/reviews/reviewed", { params: { query: { user: "ida" } } });
if (error) throw new Error(error.detail);
for (const r of data.items) console.log(`ida reviewed ${r.name}: ${r.stars} stars`);
