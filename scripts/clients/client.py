"""Writes and queries with the client that is generated from the description of projector dev."""

import datetime
import os
import time

from weir import Client
from weir.api.gallery import query_gallery_album, query_gallery_albums
from weir.api.gallery_album import create_gallery_album, delete_gallery_album, update_gallery_album
from weir.api.gallery_album_media import create_gallery_album_media
from weir.models import GalleryAlbumMerge, GalleryAlbumMediaWhole, GalleryAlbumWhole

client = Client(base_url=os.environ["WEIR"])
at = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.timezone.utc)


def expect(what, response, status):
    if response.status_code != status:
        raise SystemExit(f"{what}: {response}")
    return response.parsed


album = GalleryAlbumWhole(id="py", title="From Python", created_at=at, is_public=True)
row = expect("create", create_gallery_album.sync_detailed(client=client, body=album), 201)
if row.title != "From Python":
    raise SystemExit(f"create: {row}")
problem = expect("create again", create_gallery_album.sync_detailed(client=client, body=album), 409)
if problem is not None and problem.type_ != "urn:weir:problem:exists":
    raise SystemExit(f"create again: {problem}")
picture = GalleryAlbumMediaWhole(album_id="py", media_id="m1", added_at=at)
expect("create a picture", create_gallery_album_media.sync_detailed(client=client, body=picture), 201)
changed = update_gallery_album.sync_detailed(client=client, id="py", body=GalleryAlbumMerge(title="Changed"))
expect("change", changed, 200)

end = time.monotonic() + 20
while True:
    page = expect("query", query_gallery_album.sync_detailed(client=client, album_id="py"), 200)
    if page.items and page.items[0].media_count == 1 and page.items[0].title == "Changed":
        break
    if time.monotonic() > end:
        raise SystemExit(f"the album: {page}")
    time.sleep(0.05)
expect("a wrong cursor", query_gallery_albums.sync_detailed(client=client, cursor="x"), 400)
expect("delete", delete_gallery_album.sync_detailed(client=client, id="py"), 204)
print("python: written, derived, read")
