"""What a field table becomes: pandera schemas, SQL, JSON, JSV, views, the reference page."""
