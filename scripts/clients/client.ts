// Writes and queries with the client that is generated from the description of projector dev.
import createClient from "openapi-fetch";
import type { paths } from "./weir.js";

const weir = createClient<paths>({ baseUrl: process.env.WEIR! });
const fail = (what: string, is: unknown): never => {
  throw new Error(`${what}: ${JSON.stringify(is)}`);
};

const at = "2026-01-31T12:00:00Z";
const album = await weir.POST("/v1/gallery/Album", { body: { id: "ts", title: "From TypeScript", createdAt: at, isPublic: true } });
if (album.response.status !== 201 || album.data?.title !== "From TypeScript") fail("create", album);
const again = await weir.POST("/v1/gallery/Album", { body: { id: "ts", title: "From TypeScript", createdAt: at } });
if (again.response.status !== 409 || again.error?.type !== "urn:weir:problem:exists") fail("create again", again);
const picture = await weir.POST("/v1/gallery/AlbumMedia", { body: { albumId: "ts", mediaId: "m1", addedAt: at } });
if (picture.response.status !== 201) fail("create a picture", picture);
const changed = await weir.PATCH("/v1/gallery/Album", { params: { query: { id: "ts" } }, body: { title: "Changed" } });
if (changed.data?.title !== "Changed") fail("change", changed);

for (const end = Date.now() + 20_000; ; await new Promise((r) => setTimeout(r, 50))) {
  const got = await weir.GET("/v1/gallery/album", { params: { query: { albumId: "ts" } } });
  const row = got.data?.items[0];
  if (row?.mediaCount === 1 && row.title === "Changed") break;
  if (Date.now() > end) fail("the album", got);
}
const wrong = await weir.GET("/v1/gallery/albums", { params: { query: { cursor: "x" } } });
if (wrong.response.status !== 400 || !wrong.error?.detail) fail("a wrong cursor", wrong);
const gone = await weir.DELETE("/v1/gallery/Album", { params: { query: { id: "ts" } } });
if (gone.response.status !== 204) fail("delete", gone);
console.log("typescript: written, derived, read");
